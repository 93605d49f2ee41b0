"""English sentence boundaries (Punkt), the specification of the kernel."""
