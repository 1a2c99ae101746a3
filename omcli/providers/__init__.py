"""Language models: one module per wire protocol; an SDK is imported when it is called."""
