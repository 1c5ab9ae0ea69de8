-- Crossplane's packages. A package is installed before it is healthy, and unhealthy
-- while it starts: only what lasts is wrong, or a sync would fail at its first wave.

for _, type in ipairs({ "Installed", "Healthy" }) do
  if conditions[type] == nil then
    return health("Progressing", "Crossplane has not said yet whether it is " .. type)
  end
  if is_stale(type) then
    return health("Progressing", "Crossplane has not looked at the last change yet")
  end
end
if reason("Installed") == "InactivePackageRevision" then
  return health("Suspended", told("Installed"))
end
for _, type in ipairs({ "Installed", "Healthy" }) do
  if not is(type, "True") then
    return failing(nil, type)
  end
end
return health("Healthy", (obj.status or {}).currentRevision)
