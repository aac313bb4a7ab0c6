"""What every room uses: errors, words, reports, threads, tasks. Imports no other room."""
