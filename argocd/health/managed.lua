-- Managed resources: SpotPool, SpotLease, and those of upbound's providers.

local NEEDS_PERSON = { Configuration = true, Denied = true, Quota = true }
-- A lease waits for its turn, or has had it.
local RESTS = { Expired = true, PoolFull = true }

if is_stale("Synced") then
  return health("Progressing", "its provider has not looked at the last change yet")
end
if is("Synced", "False") then
  return failing(nil, "Synced")
end
-- upjet's: a creation in the background fails there, and nowhere else.
if is("LastAsyncOperation", "False") then
  return failing(nil, "LastAsyncOperation")
end
if is("Synced", "True") and is("Ready", "True") then
  return health("Healthy", conditions.Ready.message)
end
if RESTS[reason("Ready")] then
  return health("Suspended", conditions.Ready.message)
end
if is("Launched", "False") then
  local status = NEEDS_PERSON[reason("Launched")] and "Degraded" or "Progressing"
  return health(status, told("Launched"))
end
if reason("Ready") == "Unavailable" then
  return failing(nil, "Ready")
end
if conditions.Ready == nil then
  return health("Progressing", "its provider has not said yet whether it is ready")
end
return health("Progressing", told("Ready"))
