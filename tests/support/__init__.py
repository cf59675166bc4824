"""What many tests share: checkers of what a provider accepts, and histories to feed them."""
