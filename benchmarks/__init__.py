"""Side-by-side runs: ours beside what others would use."""
