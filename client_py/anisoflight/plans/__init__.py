"""Plans and schedules: samplers and noise levels as numbers, in files and on arrays. Begin with `plan`."""
