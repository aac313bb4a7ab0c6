"""What every room uses: errors, words, reports, threads, tasks, permutations. Imports no other room."""
