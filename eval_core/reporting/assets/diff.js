// Compares two texts: lines first, then the words of lines that belong together. Pure functions, nothing of the page.
const MOST_PAIRS = 250_000; // beyond this, a table of all pairs takes longer than anybody waits

const common = (a, b) => {
  // The longest common subsequence, as pairs of places. Lines that occur once on both sides are anchors.
  const found = [];
  const solve = (a0, a1, b0, b1) => {
    while (a0 < a1 && b0 < b1 && a[a0] === b[b0]) found.push([a0++, b0++]);
    const tail = [];
    while (a0 < a1 && b0 < b1 && a[a1 - 1] === b[b1 - 1]) tail.push([--a1, --b1]);
    if (a0 < a1 && b0 < b1) {
      const anchors = unique(a0, a1, b0, b1);
      if (anchors.length) {
        for (const [i, j] of anchors) {
          solve(a0, i, b0, j);
          found.push([i, j]);
          [a0, b0] = [i + 1, j + 1];
        }
        solve(a0, a1, b0, b1);
      } else if ((a1 - a0) * (b1 - b0) <= MOST_PAIRS) table(a0, a1, b0, b1);
    }
    while (tail.length) found.push(tail.pop());
  };
  const unique = (a0, a1, b0, b1) => {
    const seen = new Map();
    const note = (value, side, place) => {
      const entry = seen.get(value) || { a: [0, 0], b: [0, 0] };
      entry[side] = [entry[side][0] + 1, place];
      seen.set(value, entry);
    };
    for (let i = a0; i < a1; i++) note(a[i], "a", i);
    for (let j = b0; j < b1; j++) note(b[j], "b", j);
    const pairs = [...seen.values()].filter((e) => e.a[0] === 1 && e.b[0] === 1).map((e) => [e.a[1], e.b[1]]);
    pairs.sort((x, y) => x[0] - y[0]);
    // The longest run of anchors that goes forward on both sides.
    const piles = [];
    for (const pair of pairs) {
      let low = 0;
      let high = piles.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (piles[middle].pair[1] < pair[1]) low = middle + 1;
        else high = middle;
      }
      piles[low] = { pair, before: low ? piles[low - 1] : null };
    }
    const chain = [];
    for (let top = piles[piles.length - 1]; top; top = top.before) chain.push(top.pair);
    return chain.reverse();
  };
  const table = (a0, a1, b0, b1) => {
    const [n, m] = [a1 - a0, b1 - b0];
    const best = Array.from({ length: n + 1 }, () => new Uint16Array(m + 1));
    for (let i = n - 1; i >= 0; i--) {
      for (let j = m - 1; j >= 0; j--) {
        best[i][j] = a[a0 + i] === b[b0 + j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
      }
    }
    for (let i = 0, j = 0; i < n && j < m; ) {
      if (a[a0 + i] === b[b0 + j]) found.push([a0 + i++, b0 + j++]);
      else if (best[i + 1][j] >= best[i][j + 1]) i++;
      else j++;
    }
  };
  solve(0, a.length, 0, b.length);
  return found;
};

const words = (line) => line.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) || [];

const wordSpans = (left, right) => {
  // The stretches of two lines that only one of them has; none where nearly everything differs.
  const [a, b] = [words(left), words(right)];
  const same = a.length * b.length <= MOST_PAIRS ? common(a, b) : [];
  const [inA, inB] = [new Set(same.map(([i]) => i)), new Set(same.map(([, j]) => j))];
  const spans = (parts, kept) => {
    const out = [];
    let at = 0;
    parts.forEach((part, index) => {
      const last = out[out.length - 1];
      // A single space between two changes is no agreement.
      const joined = last && last[1] === at && kept.has(index) && !part.trim() && index + 1 < parts.length && !kept.has(index + 1);
      if (!kept.has(index) || joined) {
        if (last && last[1] === at) last[1] = at + part.length;
        else out.push([at, at + part.length]);
      }
      at += part.length;
    });
    return out;
  };
  return [spans(a, inA), spans(b, inB)];
};

const likeness = (a, b) => {
  if (!a.size || !b.size) return 0;
  let both = 0;
  for (const word of a) both += b.has(word);
  return (2 * both) / (a.size + b.size);
};

const bag = (line) => new Set((line.toLowerCase().match(/[\p{L}\p{N}_]+/gu) || []));

const pairUp = (left, right) => {
  // Which lines of a changed block belong together: the best pairing in order, of lines that share half of their words.
  if (!left.length || !right.length || left.length * right.length > 3600) return [];
  const [a, b] = [left.map(bag), right.map(bag)];
  const value = (i, j) => {
    const found = likeness(a[i], b[j]);
    return found >= 0.5 ? found : 0;
  };
  const best = Array.from({ length: left.length + 1 }, () => new Float64Array(right.length + 1));
  const like = left.map((_, i) => right.map((__, j) => value(i, j)));
  for (let i = left.length - 1; i >= 0; i--) {
    for (let j = right.length - 1; j >= 0; j--) {
      const match = like[i][j] ? like[i][j] + best[i + 1][j + 1] : 0;
      best[i][j] = Math.max(match, best[i + 1][j], best[i][j + 1]);
    }
  }
  const pairs = [];
  for (let i = 0, j = 0; i < left.length && j < right.length; ) {
    if (like[i][j] && best[i][j] === like[i][j] + best[i + 1][j + 1]) pairs.push([i++, j++]);
    else if (best[i + 1][j] >= best[i][j + 1]) i++;
    else j++;
  }
  return pairs;
};

const compareTexts = (leftText, rightText) => {
  // Rows of a side-by-side view: {kind: same|changed|gone|new, left, right, leftSpans, rightSpans, movedTo, movedFrom}.
  const left = leftText.split("\n");
  const right = rightText.split("\n");
  const same = common(left, right);
  // A line that is gone here and new there was moved; very short ones recur by chance.
  const plain = (text) => text.trim().replace(/\s+/g, " ");
  const [inLeft, inRight] = [new Set(same.map(([i]) => i)), new Set(same.map(([, j]) => j))];
  const gone = new Map();
  left.forEach((line, i) => !inLeft.has(i) && plain(line).length >= 12 && gone.set(plain(line), i));
  const [to, from] = [new Map(), new Map()];
  right.forEach((line, j) => {
    const i = inRight.has(j) ? undefined : gone.get(plain(line));
    if (i === undefined) return;
    gone.delete(plain(line));
    to.set(i, j);
    from.set(j, i);
  });

  const rows = [];
  const [rowOfLeft, rowOfRight] = [new Map(), new Map()];
  const add = (kind, leftLine, rightLine, leftSpans = [], rightSpans = []) => {
    rows.push({ kind, left: leftLine, right: rightLine, leftSpans, rightSpans });
    return rows.length - 1;
  };
  const block = (a0, a1, b0, b1) => {
    let [i, j] = [a0, b0];
    const loose = (toA, toB) => {
      // Lines without a counterpart are shown together, as two columns; moved lines are shown separately.
      const [a, b] = [[], []];
      const flush = () => {
        if (a.length && b.length) add("changed", a.join("\n"), b.join("\n"));
        else for (const line of [...a, ...b]) add(a.length ? "gone" : "new", a.length ? line : null, a.length ? null : line);
        a.length = b.length = 0;
      };
      for (; i < toA; i++) {
        if (!to.has(i)) a.push(left[i]);
        else {
          flush();
          rowOfLeft.set(i, add("gone", left[i], null));
        }
      }
      for (; j < toB; j++) {
        if (!from.has(j)) b.push(right[j]);
        else {
          flush();
          rowOfRight.set(j, add("new", null, right[j]));
        }
      }
      flush();
    };
    const own = (lines, start, end, moved) => [...Array(end - start).keys()].map((at) => start + at).filter((at) => !moved.has(at) && plain(lines[at]));
    const [mine, theirs] = [own(left, a0, a1, to), own(right, b0, b1, from)];
    for (const [p, q] of pairUp(mine.map((at) => left[at]), theirs.map((at) => right[at]))) {
      loose(mine[p], theirs[q]);
      add("changed", left[mine[p]], right[theirs[q]], ...wordSpans(left[mine[p]], right[theirs[q]]));
      [i, j] = [mine[p] + 1, theirs[q] + 1];
    }
    loose(a1, b1);
  };
  let [i, j] = [0, 0];
  for (const [p, q] of [...same, [left.length, right.length]]) {
    if (p > i || q > j) block(i, p, j, q);
    if (p < left.length) add("same", left[p], right[q]);
    [i, j] = [p + 1, q + 1];
  }
  for (const [p, q] of to) {
    rows[rowOfLeft.get(p)].movedTo = rowOfRight.get(q);
    rows[rowOfRight.get(q)].movedFrom = rowOfLeft.get(p);
  }
  return rows;
};
