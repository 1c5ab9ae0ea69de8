-- Claims, their composites, flavors and users: what docs/conditions.md tells.

local NEEDS_PERSON = {
  Configuration = true,
  CrashLooping = true,
  Denied = true,
  ImageUnavailable = true,
  Lost = true,
  Quota = true,
  StatusUnreadable = true,
  -- Of an instance, by somebody, in EC2. A workspace that is to rest is in phase Stopped.
  Stopped = true,
}
-- What passes by itself, or is a refusal if it does not.
local PASSES_OR_NOT = {
  ContainerFails = true,
  HomeUnbound = true,
  PodMissing = true,
  ReconcileError = true,
  WaitingForHome = true,
}
local RESTS = { Queued = true, Stopped = true, Expired = true }

local status = obj.status or {}
local is_workspace = obj.kind == "GpuDevWorkspaceClaim" or obj.kind == "GpuDevWorkspace"

local function first_false(types)
  for _, type in ipairs(types) do
    if conditions[type] ~= nil and not is(type, "True") then
      return told(type)
    end
  end
end

if is_stale("Synced") then
  return health("Progressing", "Crossplane has not looked at the last change yet")
end
if is("ConfigResolved", "False") then
  return health("Degraded", conditions.ConfigResolved.message)
end
-- The function waits for what Crossplane fetches.
if is("ConfigResolved", "Unknown") and is_lasting("ConfigResolved") then
  return health("Degraded", told("ConfigResolved"))
end
if status.phase == "Failed" then
  return health("Degraded", status.message or first_false({ "ComputeReady", "HomeReady" }))
end
for _, type in ipairs({ "HomeReady", "ComputeReady" }) do
  if is(type, "False") and not RESTS[status.phase] and NEEDS_PERSON[reason(type)] then
    return health("Degraded", conditions[type].message)
  end
end
if is("Synced", "False") then
  return failing(nil, "Synced")
end
if RESTS[status.phase] then
  return health("Suspended", status.message or first_false({ "Admitted", "ComputeReady" }))
end
if is("ComputeReady", "False") and PASSES_OR_NOT[reason("ComputeReady")] then
  return failing(status.message, "ComputeReady")
end
if is("Ready", "True") and (not is_workspace or status.phase == "Ready") then
  return health("Healthy", status.message or status.ssh)
end
return health(
  "Progressing",
  status.message or first_false({ "ConfigResolved", "ComputeReady", "HomeReady", "Admitted", "Ready" })
)
