-- CompositeResourceDefinitions: composites are served, and claims where there are any.

local types = { "Established" }
if (obj.spec or {}).claimNames ~= nil then
  types = { "Established", "Offered" }
end
for _, type in ipairs(types) do
  if conditions[type] == nil then
    return health("Progressing", "Crossplane has not said yet whether it is " .. type)
  end
  if is_stale(type) then
    return health("Progressing", "Crossplane has not looked at the last change yet")
  end
  if not is(type, "True") then
    return failing(nil, type)
  end
end
return health("Healthy", "")
