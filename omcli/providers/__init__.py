"""Language models: a module per wire protocol; SDKs are imported on the first call."""
