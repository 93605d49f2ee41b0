"""Ways to make an update over the devices."""
