git init -q -b main .
git add -A
git commit -qm 'Use the first context file by priority (#387)'
git init -q --bare ../remote.git
git remote add origin ../remote.git
git push -q -u origin main
