-- The delays of `slow_server.py` and the listings of S3. Runs inside nginx.
local server = {}
local sizes, keys, settings = {}, {}, {}

local function escape(text)
  return (text:gsub("&", "&amp;"):gsub("<", "&lt;"):gsub(">", "&gt;"):gsub('"', "&quot;"))
end

-- The listing is a file that Python writes: a line for each object, sorted, as nginx has no folders.
function server.load(path, values)
  settings = values
  for line in io.lines(path) do
    local key, size, modified, tag = line:match("([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)")
    sizes["/" .. key] = tonumber(size)
    keys[#keys + 1] = { key = key, size = size, modified = modified, tag = tag }
  end
end

-- nginx would outlive a process that was killed
function server.watch()
  ngx.timer.every(1, function()
    local stat = io.open("/proc/" .. settings.parent .. "/stat")
    if stat then stat:close() else os.exit(0) end
  end)
end

local function body_bytes()
  if ngx.req.get_method() == "HEAD" then return 0 end
  local size = sizes[ngx.var.uri] or 0
  local first, last = (ngx.var.http_range or ""):match("bytes=(%d*)-(%d*)")
  first, last = tonumber(first), tonumber(last)
  if first then return math.max(0, math.min(last or size, size - 1) - first + 1) end
  return last and math.min(last, size) or size
end

-- A response begins after the delay and when the link is free. nginx slows a connection down
-- only after each chunk, so the time of the first chunk is waited for in advance.
function server.wait()
  local bytes = body_bytes()
  local now = ngx.now()
  local start = now + settings.delay
  if settings.link_rate > 0 then
    local link = ngx.shared.link
    start = math.max(start, link:get("free") or 0)
    link:set("free", start + math.min(bytes, settings.most_reserved) / settings.link_rate)
  end
  ngx.sleep(start - now + math.min(bytes, settings.chunk) / settings.rate)
end

local function first_after(key)
  local low, high = 1, #keys + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    if keys[middle].key <= key then low = middle + 1 else high = middle end
  end
  return low
end

function server.list(bucket)
  local wanted = ngx.req.get_uri_args()
  local function of(name) return type(wanted[name]) == "string" and wanted[name] or "" end
  local prefix, delimiter = bucket .. "/" .. of("prefix"), of("delimiter")
  local most = math.min(tonumber(of("max-keys")) or 1000, 1000)
  local after = of("continuation-token") ~= "" and of("continuation-token") or of("start-after")
  local at = first_after(after ~= "" and bucket .. "/" .. after or prefix:sub(1, -2))
  local parts, count, folder, last, cut = {}, 0, nil, nil, false
  while at <= #keys do
    local key = keys[at].key
    if key:sub(1, #prefix) ~= prefix then
      if key > prefix then break end
    elseif not (folder and key:sub(1, #folder) == folder) then
      local found = delimiter ~= "" and key:find(delimiter, #prefix + 1, true)
      if count == most then cut = true break end
      count, last = count + 1, key:sub(#bucket + 2)
      if found then
        folder = key:sub(1, found)
        last = folder:sub(#bucket + 2) .. "\255"
        parts[#parts + 1] = "<CommonPrefixes><Prefix>" .. escape(folder:sub(#bucket + 2))
          .. "</Prefix></CommonPrefixes>"
      else
        parts[#parts + 1] = "<Contents><Key>" .. escape(last) .. "</Key><LastModified>"
          .. keys[at].modified .. "</LastModified><ETag>" .. escape(keys[at].tag)
          .. "</ETag><Size>" .. keys[at].size .. "</Size></Contents>"
      end
    end
    at = at + 1
  end
  local body = '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult><Name>' .. bucket
    .. "</Name><KeyCount>" .. count .. "</KeyCount><MaxKeys>" .. most .. "</MaxKeys><IsTruncated>"
    .. tostring(cut) .. "</IsTruncated>"
    .. (cut and "<NextContinuationToken>" .. escape(last) .. "</NextContinuationToken>" or "")
    .. table.concat(parts) .. "</ListBucketResult>"
  ngx.header.content_type = "application/xml"
  ngx.header.content_length = #body
  ngx.print(body)
end

return server
