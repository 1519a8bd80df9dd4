import nowhere_to_be_found

nowhere_to_be_found.use()
