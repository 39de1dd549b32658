"""What tests of your own stand on. Nothing in Penstock itself imports it."""
