"""Language model providers: one module per wire protocol. SDKs are imported on the first call."""
