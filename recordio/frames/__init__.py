"""The record frame: located, joined and resynchronised; read, written, indexed and checked."""
