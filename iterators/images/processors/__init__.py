"""Tensors of vision-language models, as the processors of Hugging Face make them."""
