// Shows the OpenAPI document of this server. It builds elements and sets their text, never their HTML, so that nothing of the document can become a script.
// The document is asked for with the session of the dashboard, or with a token that is typed in; the token is kept in this page only.

const METHODS = ['get', 'post', 'put', 'patch', 'delete']
const INDENT_DEPTH_MAX = 12

const at = (id) => document.getElementById(id)

/** make('p', {class: 'x'}, 'text', child, …) */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
  element.append(...children.filter((child) => child !== null && child !== undefined))
  return element
}

async function load(token) {
  const headers = token === '' ? {} : { authorization: `Bearer ${token}` }
  const answer = await fetch('/api/v1/openapi.json', { headers, credentials: 'same-origin' })
  if (answer.ok) return answer.json()
  const problem = await answer.json().catch(() => ({}))
  throw new Error(problem.detail ?? problem.title ?? `HTTP ${answer.status}`)
}

const resolve = (spec, schema) => {
  const name = /^#\/components\/schemas\/(.+)$/.exec(schema?.$ref ?? '')?.[1]
  return name === undefined ? schema : spec.components.schemas[name]
}

function typeText(schema) {
  if (schema === undefined) return 'any'
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum !== undefined) return schema.enum.map((one) => JSON.stringify(one)).join(' | ')
  const type = Array.isArray(schema.type) ? schema.type.join(' | ') : (schema.type ?? 'any')
  const bounds = ['minimum', 'maximum', 'minLength', 'maxLength', 'maxItems', 'pattern', 'default']
    .filter((name) => schema[name] !== undefined && Math.abs(Number(schema[name])) !== Number.MAX_SAFE_INTEGER)
    .map((name) => `${name} ${JSON.stringify(schema[name])}`)
  return [type, ...bounds].join(', ')
}

/** A list of the members, each with its own members inside, opened on demand: schemas may name themselves. */
function members(spec, given, depth = 0) {
  const schema = resolve(spec, given)
  if (schema === undefined || depth > INDENT_DEPTH_MAX) return null
  const options = schema.anyOf ?? schema.oneOf
  if (options !== undefined) {
    const list = make('ul', {})
    options.forEach((option, index) => {
      list.append(make('li', {}, `option ${index + 1}: ${typeText(resolve(spec, option))}`, nested(spec, option, depth)))
    })
    return list
  }
  if (schema.type === 'array') return schema.items === undefined ? null : nested(spec, schema.items, depth, 'items')
  const entries = Object.entries(schema.properties ?? {})
  if (typeof schema.additionalProperties === 'object' && Object.keys(schema.additionalProperties).length > 0)
    entries.push(['(any name)', schema.additionalProperties])
  if (entries.length === 0) return null
  const required = new Set(schema.required ?? [])
  const list = make('ul', {})
  for (const [name, member] of entries) {
    const known = resolve(spec, member)
    const mark = required.has(name) ? make('span', { class: 'required' }, ' required') : null
    const said = known?.description === undefined ? null : make('span', { class: 'said' }, ` ${known.description}`)
    list.append(make('li', {}, make('code', {}, name), ` ${typeText(known)}`, mark, said, nested(spec, member, depth)))
  }
  return list
}

function nested(spec, schema, depth, label = 'fields') {
  const known = resolve(spec, schema)
  const has = known?.properties ?? known?.items ?? known?.anyOf ?? known?.oneOf ?? known?.additionalProperties
  if (typeof has !== 'object') return null
  const details = make('details', {}, make('summary', {}, label))
  details.addEventListener('toggle', () => {
    if (details.open && details.childElementCount === 1) details.append(members(spec, schema, depth + 1) ?? 'no fields')
  })
  return details
}

function body(spec, title, content) {
  return Object.entries(content ?? {}).map(([media, { schema, example, examples }]) => {
    const shown = example ?? examples?.[0] ?? resolve(spec, schema)?.examples?.[0]
    const sample = shown === undefined ? null : make('pre', {}, JSON.stringify(shown, null, 2))
    return make('div', {}, make('p', {}, `${title}: ${media}, ${typeText(resolve(spec, schema))}`), sample, members(spec, schema))
  })
}

function operation(spec, path, method, described) {
  const details = make(
    'details',
    { class: 'operation', id: described.operationId },
    make('summary', {}, make('b', { class: method }, method.toUpperCase()), ' ', make('code', {}, path), ' ', described.summary ?? ''),
  )
  details.addEventListener('toggle', () => {
    if (!details.open || details.childElementCount > 1) return
    const { parameters = [], requestBody, responses = {} } = described
    if (parameters.length > 0) {
      const rows = parameters.map((one) =>
        make(
          'tr',
          {},
          make('td', {}, make('code', {}, one.name)),
          make('td', {}, one.in),
          make('td', {}, typeText(one.schema)),
          make('td', {}, one.required ? 'required' : ''),
          make('td', {}, one.description ?? one.schema?.description ?? ''),
        ),
      )
      details.append(make('h4', {}, 'Parameters'), make('table', {}, ...rows))
    }
    if (requestBody !== undefined)
      details.append(make('h4', {}, 'Body'), ...body(spec, requestBody.required ? 'required' : 'optional', requestBody.content))
    details.append(make('h4', {}, 'Answers'))
    for (const [status, answer] of Object.entries(responses))
      details.append(make('details', {}, make('summary', {}, `${status} ${answer.description}`), ...body(spec, 'body', answer.content)))
  })
  return details
}

function show(spec) {
  const groups = new Map()
  for (const [path, operations] of Object.entries(spec.paths))
    for (const method of METHODS)
      if (operations[method] !== undefined) {
        const tag = operations[method].tags?.[0] ?? 'other'
        groups.set(tag, [...(groups.get(tag) ?? []), operation(spec, path, method, operations[method])])
      }
  const main = at('operations')
  main.replaceChildren(make('p', {}, `${spec.info.title} ${spec.info.version}, OpenAPI ${spec.openapi}`))
  for (const [tag, operations] of [...groups].sort(([a], [b]) => a.localeCompare(b)))
    main.append(make('section', {}, make('h2', {}, tag), ...operations))
}

function filter(words) {
  const wanted = words.toLowerCase().split(/\s+/)
  for (const element of document.querySelectorAll('.operation')) {
    const text = element.firstChild.textContent.toLowerCase()
    element.hidden = !wanted.every((word) => text.includes(word))
  }
  for (const section of document.querySelectorAll('section')) section.hidden = section.querySelector('.operation:not([hidden])') === null
}

async function start(token) {
  try {
    show(await load(token))
    at('login').hidden = true
    at('filter').hidden = false
  } catch (error) {
    at('login').hidden = false
    at('problem').textContent = token === '' ? '' : String(error.message)
  }
}

at('login').addEventListener('submit', (event) => {
  event.preventDefault()
  void start(at('token').value.trim())
})
at('filter').addEventListener('input', (event) => filter(event.target.value))
void start('')
