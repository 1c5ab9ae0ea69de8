//! Every API type of GPU workspaces, and nothing else.
