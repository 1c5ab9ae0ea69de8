-- What every health check begins with. Argo CD runs each script alone, and without
-- Lua's string library; `os` has `time` and `date` only.
local os = require("os")

-- How long something may fail before it needs a person. Crossplane tries again all the
-- time, and most of what fails once succeeds within seconds.
local PATIENCE = 5 * 60

local conditions = {}
for _, condition in ipairs((obj.status or {}).conditions or {}) do
  conditions[condition.type] = condition
end

local function health(status, message)
  return { status = status, message = message or "" }
end

local function is(type, status)
  return conditions[type] ~= nil and conditions[type].status == status
end

local function reason(type)
  return conditions[type] ~= nil and conditions[type].reason or ""
end

-- A condition as a sentence: its message, or else its reason.
local function told(type)
  local condition = conditions[type]
  if condition.message ~= nil and condition.message ~= "" then
    return type .. ": " .. condition.message
  end
  return type .. ": " .. (condition.reason or condition.status)
end

-- Whether a condition is as it is for longer than that. Times compare as text. Argo
-- CD's `date` writes a given time in the local zone only, so the clock of UTC is read
-- as if it were local.
local function is_lasting(type)
  local since = conditions[type].lastTransitionTime
  local utc = os.time(os.date("!*t"))
  return since ~= nil and since < os.date("%Y-%m-%dT%H:%M:%SZ", utc - PATIENCE)
end

-- Whether a condition tells of an older spec. One that does not say is believed.
local function is_stale(type)
  local seen = (conditions[type] or {}).observedGeneration
  local generation = obj.metadata.generation
  return seen ~= nil and generation ~= nil and seen < generation
end

local function failing(message, type)
  return health(is_lasting(type) and "Degraded" or "Progressing", message or told(type))
end

if reason("Synced") == "ReconcilePaused" then
  return health("Suspended", told("Synced"))
end
if next(conditions) == nil then
  return health("Progressing", "nothing has looked at it yet")
end
