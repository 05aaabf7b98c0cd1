// Which part may know which: every rule with its reason, which is what a failure prints.
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { importsOf, linesMatching, productFiles, ROOT, type SourceFile, typeScriptFiles, withoutComments } from './support/source-files.ts'

const inFolder = (folder: string) => (path: string) => path.startsWith(`${folder}/`)
const list =
  (...paths: string[]) =>
  (path: string) =>
    paths.includes(path)
type Where = (path: string) => boolean

/** Fails with the reason and the offenders, one a line. */
function expectNone(offenders: string[], reason: string): void {
  expect(offenders.length === 0 ? '' : `${reason}\n  ${offenders.join('\n  ')}\n`).toBe('')
}

interface Layer {
  from: string
  never: readonly string[]
  reason: string
}

const LAYERS: readonly Layer[] = [
  { from: 'shared', never: ['server', 'agent'], reason: 'shared/ is what both sides agree on; it knows neither' },
  ...[
    { from: 'server', never: ['agent'] },
    { from: 'agent', never: ['server'] },
  ].map((layer) => ({ ...layer, reason: 'server and agent are two programs of different versions; they meet only in shared/protocol' })),
  { from: 'client', never: ['server', 'agent'], reason: 'the client runs in browsers and scripts: types of shared, and fetch' },
  ...['shared', 'server', 'agent', 'client'].map((from) => ({ from, never: ['scripts', 'tests'], reason: 'tools are no product' })),
]

test.each(LAYERS.map((layer) => [`${layer.from} never imports ${layer.never.join(' or ')}`, layer] as const))('%s', (_, layer) => {
  const offenders = productFiles
    .filter(({ path }) => inFolder(layer.from)(path))
    .flatMap((file) => importsOf(file).map(({ target }) => ({ path: file.path, target })))
    .filter(({ target }) => layer.never.some((folder) => target?.startsWith(`${folder}/`)))
  expectNone(
    offenders.map(({ path, target }) => `${path} imports ${target}`),
    layer.reason,
  )
})

test('the command line of the server imports only shared and itself', () => {
  const offenders = productFiles
    .filter(({ path }) => path.startsWith('server/cli/'))
    .flatMap((file) => importsOf(file).flatMap(({ target }) => (target?.startsWith('server/') ? [{ path: file.path, target }] : [])))
    .filter(({ target }) => !target.startsWith('server/cli/'))
  expectNone(
    offenders.map(({ path, target }) => `${path} imports ${target}`),
    'the CLI talks HTTP to a server that may be of another version; what it needs to know of it is in shared/',
  )
})

test('workers know nothing of the server but how content is read and rendered', () => {
  const rooms = ['server/worker/', 'server/render/', 'server/sources/', 'shared/']
  const offenders = productFiles
    .filter(({ path }) => inFolder('server/worker')(path))
    .flatMap((file) => importsOf(file).flatMap(({ target }) => (target === null ? [] : [{ path: file.path, target }])))
    .filter(({ target }) => !rooms.some((room) => target.startsWith(room)))
  expectNone(
    offenders.map(({ path, target }) => `${path} imports ${target}`),
    'a worker reads content of tenants: it has no store, no keys, and no way to agents',
  )
})

test('the server itself loads nothing that reads content of tenants', () => {
  const reading = [
    'server/render/pipeline.ts',
    'server/render/renderers.ts',
    'shared/adapters/yaml.ts',
    'server/sources/sources.ts',
    'liquidjs',
    'isomorphic-git',
    'openpgp',
  ]
  const files = new Map(productFiles.map((file) => [file.path, file]))
  const found = new Map<string, string>([['server/server.ts', 'server/server.ts']])
  for (const [path, way] of found)
    for (const { specifier, target, typeOnly } of files.has(path) ? importsOf(files.get(path) as SourceFile) : [])
      if (!typeOnly && !found.has(target ?? specifier)) found.set(target ?? specifier, `${target ?? specifier}, by ${way}`)
  expectNone(
    reading.flatMap((one) => found.get(one) ?? []),
    'what parses a repository, a chart or a template can be made to hang: that is what workers are for',
  )
})

interface Library {
  name: string
  importers: Where
  reason: string
}

const LIBRARIES: readonly Library[] = [
  {
    name: 'bun:sqlite',
    importers: list('shared/adapters/sqlite.ts'),
    reason: 'its defaults (no busy timeout, trusted schema, temp files) are wrong for us; one open function sets them',
  },
  {
    name: 'bun:ffi',
    importers: list(
      'shared/adapters/crdt-db.ts',
      'shared/adapters/code-pages.ts',
      'shared/adapters/parent-death.ts',
      'shared/adapters/core-dumps.ts',
      'server/render/sandbox/confine.ts',
    ),
    reason: 'only loading cr-sqlite out of the binary, giving code pages back, ending with a parent, core dumps and Landlock need it',
  },
  { name: 'isomorphic-git', importers: inFolder('server/sources/git'), reason: 'the git CLI or another library may replace it' },
  { name: 'openpgp', importers: list('server/sources/git/openpgp.ts'), reason: 'which signatures count is decided in one file' },
  {
    name: 'js-yaml',
    importers: list('shared/adapters/yaml.ts'),
    reason: 'two parsers for manifests would disagree; kubectl’s scalar rules live there',
  },
  {
    name: 'liquidjs',
    importers: (path) => path.startsWith('server/render/liquid/'),
    reason:
      'its defaults read the working directory, the clock and prototypes; one room says what templates may do and counts what they cost',
  },
  { name: '@opentelemetry', importers: list('shared/adapters/telemetry.ts'), reason: 'elsewhere one function records finished spans' },
  { name: 'nodemailer', importers: list('server/notify/sinks/email.ts'), reason: 'one file speaks SMTP, through the address guard' },
  { name: 'prom-client', importers: list('shared/adapters/metrics.ts'), reason: 'one file holds metrics to the documented table' },
  { name: 'kysely', importers: inFolder('server/store'), reason: 'SQL stays behind the store port, which has two databases to serve' },
  { name: 'pg', importers: inFolder('server/store'), reason: 'SQL stays behind the store port, which has two databases to serve' },
  {
    name: 'elysia',
    importers: (path) => path === 'server/app.ts' || inFolder('server/http')(path),
    reason: 'routes parse, call and answer; nothing further in knows HTTP',
  },
  {
    name: '@elysiajs/openapi',
    importers: (path) => path === 'server/app.ts' || inFolder('server/http')(path),
    reason: 'routes parse, call and answer; nothing further in knows HTTP',
  },
  {
    name: '@kubernetes/client-node',
    importers: list('agent/cluster/kubeconfig.ts'),
    reason: 'its transport ignores the cluster CA under Bun and its models lose fields: it only loads kubeconfigs',
  },
  {
    name: '@marcbachmann/cel-js',
    importers: list('shared/adapters/cel.ts'),
    reason: 'its expressions have no budget: one file refuses and counts what could grow',
  },
  {
    name: 'semver',
    importers: list('server/sources/range.ts'),
    reason: 'charts, tags and artifacts have one idea of what a range holds: that of helm',
  },
  {
    name: 'openid-client',
    importers: list('server/access/oidc/provider.ts'),
    reason: 'which checks a sign-in passes is decided in one file',
  },
  { name: 'jose', importers: list('server/access/oidc/workload.ts'), reason: 'which JWTs are good is decided in one file' },
  { name: 'bun:jsc', importers: list('shared/adapters/profiler.ts'), reason: 'profiles of the engine are bounded in one file' },
  { name: 'diff', importers: list('shared/adapters/text-diff.ts'), reason: 'one file bounds how long a comparison takes' },
  { name: 'age-encryption', importers: inFolder('shared/adapters'), reason: 'files are opened in age.ts, streams in age-streams.ts' },
  { name: 'tar-stream', importers: list('server/backup/archive/archive.ts'), reason: 'one file decides what an archive may hold' },
  { name: 'hpke', importers: list('shared/adapters/hpke.ts'), reason: 'one suite, and its export alone' },
  { name: 'pino', importers: list('shared/adapters/pino-logger.ts'), reason: 'everything else logs through the Logger interface' },
  {
    name: 'commander',
    importers: (path) => ['server/cli/', 'agent/cli/', 'shared/adapters/'].some((folder) => path.startsWith(folder)),
    reason: 'options become one typed object at the door',
  },
  {
    name: '@commander-js/extra-typings',
    importers: (path) => ['server/cli/', 'agent/cli/', 'shared/adapters/'].some((folder) => path.startsWith(folder)),
    reason: 'options become one typed object at the door',
  },
  ...['preact', '@preact/signals', 'preact-iso'].map((name) => ({
    name,
    importers: inFolder('server/dashboard/ui'),
    reason: 'the dashboard is a page in a browser; nothing of it is loaded by the server',
  })),
  { name: 'zod', importers: () => true, reason: 'schemas stand beside the types they make' },
]

const packageOf = (specifier: string) => specifier.match(/^@opentelemetry(?=\/)|^@[^/]+\/[^/]+|^[^/]+/)?.[0] ?? ''

test('each outside library is imported by its one home', () => {
  const offenders: string[] = []
  for (const file of productFiles) {
    for (const { specifier, target } of importsOf(file)) {
      if (target !== null || specifier.startsWith('node:') || specifier === 'bun') continue
      const name = packageOf(specifier)
      const library = LIBRARIES.find((entry) => entry.name === name)
      if (!library) offenders.push(`${file.path} imports ${specifier}: list it here, with its one importer and why`)
      else if (!library.importers(file.path)) offenders.push(`${file.path} imports ${specifier}: ${library.reason}`)
    }
  }
  expectNone(offenders, 'an upgrade or a replacement of a library has to be one file')
})

test('every dependency in package.json is in the table above, so that it has a home and a reason', () => {
  const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { dependencies: Record<string, string> }
  const known = new Set([...LIBRARIES.map(({ name }) => name), '@vlcn.io/crsqlite'])
  expectNone(
    Object.keys(dependencies).filter((name) => !known.has(packageOf(name))),
    'a dependency nobody may import is one too many (@vlcn.io/crsqlite is built, not imported)',
  )
})

// Decisions: all inputs come in, sorted data goes out. Impure files of the same folder are named.
const PURE_FOLDERS = [
  'shared/protocol',
  'shared/crdt',
  'shared/kube',
  'shared/model',
  'server/fleet',
  'server/messages',
  'server/render',
  'agent/reconcile',
  'agent/messages',
]
const ACTING_FILES: Readonly<Record<string, string>> = {
  'agent/reconcile/reconcile-loop.ts': 'the loop: order of calls, nothing else',
  'agent/reconcile/apply/execute.ts': 'acts on the cluster through its port',
  'agent/reconcile/snapshot/watch/kind-watch.ts': 'holds the live objects of a kind by watching through the port',
  'agent/reconcile/snapshot/watch/doubts.ts': 'waits for the reads of single objects',
  'agent/reconcile/snapshot/watch/follow-ups.ts': 'watches and reads single objects through the port',
  'agent/reconcile/snapshot/watch/checked-answers.ts': 'looks at answers of the port as they come',
  'agent/reconcile/snapshot/watch/resync.ts': 'lists through the port, one kind at a time',
  'agent/reconcile/snapshot/watch/watches.ts': 'passes on what a read by name answered',
  'agent/reconcile/work-queue.ts': 'runs one pass for each service at a time',
  'agent/reconcile/apply/terminating.ts': 'reads the namespace that a write was refused for',
  'agent/reconcile/report/explainer.ts': 'asks why objects are not well, beside the turns',
  'agent/reconcile/report/read-cause.ts': 'reads the Pods, Jobs and Events that say why',
  'agent/reconcile/snapshot/watch/storage-classes.ts': 'follows StorageClasses while a claim of ours is Pending',
  'agent/reconcile/report/kube-events.ts': 'writes Kubernetes Events through the port',
  'agent/reconcile/report/health-choices.ts': 'compiles the health rules of services, whose library is loaded for the first one',
  'agent/reconcile/report/fleet-rules.ts': 'compiles the health rules of the fleet, whose library is loaded for the first one',
  'agent/reconcile/claim/claim-keeper.ts': 'keeps the claim object through the port',
  'agent/reconcile/apply/marked-search.ts': 'lists marked objects through the port, once for all services',
  'agent/reconcile/apply/discovery-gaps.ts': 'reads through the port which kinds are defined',
  'agent/reconcile/apply/revision.ts': 'reads what is desired from the replica at the start of a turn',
  'agent/reconcile/apply/rounds.ts': 'plans and carries out until nothing is left to do',
  'agent/reconcile/apply/phase-rounds.ts': 'the rounds in the order of phases and waves',
  'agent/reconcile/apply/hook-rounds.ts': 'carries out what hooks need',
  'agent/reconcile/apply/gone-jobs.ts': 'lists the Events about a Job that went while nobody watched',
  'agent/reconcile/apply/prune-rounds.ts': 'carries out what a prune may',
  'agent/reconcile/snapshot/watch/autoscalers.ts': 'follows the streams of autoscalers, through the port',
  'agent/reconcile/apply/acting.ts': 'the port as another user, with why that one may not',
  'agent/reconcile/apply/replace.ts': 'a look and a patch of managedFields, through the port',
  'agent/reconcile/apply/send-apply.ts': 'sends an apply through the port, again where nulls were refused',
  'agent/reconcile/apply/take-over.ts': 'a look and a patch of managedFields, through the port',
  'agent/reconcile/snapshot/watch/first-contacts.ts': 'asks what is there already, through the port, once for all services',
  'agent/reconcile/apply/heal-leaving.ts': 'carries out what puts back an object that a waiting revision drops',
  'agent/reconcile/apply/contents.ts': 'looks into Namespaces and CRDs before they are deleted, through the port',
  'agent/reconcile/snapshot/watch/definitions.ts': 'reads CRDs by name, through the port',
  'agent/reconcile/snapshot/watch/served-kinds.ts': 'asks discovery what is served, through the port',
  'server/render/liquid/engine.ts': 'text in, text out: named only because it has a library',
  'server/render/excerpts.ts': 'reads the lines of problems through the tree',
  'server/render/origins.ts': 'looks up the files of objects in the tree',
  'server/render/kustomize/remote-trees.ts': 'opens remote bases through their port',
  'server/render/liquid/files.ts': 'reads partials through the tree',
  'server/render/kustomize/scan.ts': 'reads what a kustomization names through the tree',
  'server/render/kustomize/kustomize-renderer.ts': 'runs kustomize through the port',
  'server/render/sops/clear-file.ts': 'asks for the data key of a file through its port',
  'server/render/liquid/run.ts': 'counts and looks up: named only because it has a library',
  'server/render/liquid/syntax.ts': 'looks at parsed templates: named only because it has a library',
  'agent/reconcile/requests/request-scheduler.ts': 'how many requests are in flight, and whose',
  'server/render/sandbox/runs.ts': 'runs programs: places their files, starts them, cleans up',
  'server/render/sandbox/process.ts': 'starts a process, watches and ends it',
  'server/render/sandbox/trees.ts': 'writes the files of renders, and removes them',
  'server/render/sandbox/programs.ts': 'looks where programs are',
  'server/render/sandbox/exec-version.ts': 'reads what a program is made of',
  'server/render/program-answer.ts': 'asks for the answer of a program',
  'server/render/sandbox/elf.ts': 'reads of programs which libraries they need',
  'server/render/sandbox/process-groups.ts': 'makes and removes control groups',
  'server/render/sandbox/tree-size.ts': 'asks the kernel what a process takes',
  'server/render/typescript/typescript-renderer.ts': 'runs the entry in the sandbox',
  'server/render/typescript/closure.ts': 'reads imports through the tree',
  'server/render/typescript/runner.ts': 'is a program of its own, inside the sandbox',
  'server/render/sandbox/confine.ts': 'is a program of its own, which becomes one of the sandbox',
  'server/render/typescript/bundle.ts': 'bundles that program when this one is built',
  'server/render/exec/exec-renderer.ts': 'runs a program in the sandbox',
  'server/render/sandbox/slots.ts': 'lets those wait for whom there is no place yet',
  'server/render/sandbox/fair-slots.ts': 'lets projects wait until they have a place',
  'server/render/record/tree.ts': 'reads a tree through its port',
  'server/render/record/sandbox.ts': 'runs a program through the port',
  'server/render/helm/chart.ts': 'reads a chart through its tree',
  'server/render/sandbox/schema-references.ts': 'inflates packed charts',
  'server/render/helm/layers.ts': 'reads values files through their trees',
  'server/render/helm/run.ts': 'runs helm through the sandbox',
  'server/render/helm/helm-renderer.ts': 'the renderer: order of the calls above, nothing else',
  'server/render/pipeline.ts': 'the order of what happens to one service; reads trees and runs renderers through their ports',
  'server/render/renderer-of.ts': 'looks into trees through their port for the file that decides, and for folders of nearly that name',
  'server/render/render-raw.ts': 'reads a tree through its port',
  'server/render/cache/files.ts': 'the files of the cache',
  'server/render/cache/renders.ts': 'finds in memory and in those files what was rendered before',
}
const PURE_ADAPTERS: Readonly<Record<string, string>> = {
  'shared/adapters/yaml.ts': 'text in, values out: an adapter only because it has a library',
}
const pureFiles = productFiles.filter(({ path }) => PURE_FOLDERS.some((folder) => inFolder(folder)(path)) && !(path in ACTING_FILES))

test('pure folders import no adapter, no file system, no network, no process', () => {
  const harmless = new Set(['node:crypto', 'node:buffer'])
  const offenders = pureFiles.flatMap((file) =>
    importsOf(file)
      .filter(({ specifier, target, typeOnly }) => {
        if (typeOnly) return false
        if (target === null) return specifier !== 'zod' && !harmless.has(specifier)
        return target.includes('/adapters/') && !(target in PURE_ADAPTERS)
      })
      .map(({ specifier }) => `${file.path} imports ${specifier}`),
  )
  expectNone(offenders, 'a decision that does I/O cannot be tested by a table nor simulated a million times')
})

test('pure folders do not wait', () => {
  const offenders = pureFiles.flatMap((file) => linesMatching({ ...file, text: withoutComments(file.text) }, /\bawait\b|\basync\b/))
  expectNone(
    offenders,
    'a decision takes what it needs as arguments and answers at once; whoever awaits belongs to ACTING_FILES above, with a reason',
  )
})

/** The rooms of the server in the order in which a commit passes them. A room imports only rooms before it. */
const SERVER_ROOMS = ['fleet', 'store', 'access', 'desired', 'ingest', 'notify', 'actions', 'http'] as const
const serverRoomOf = (path: string): number => SERVER_ROOMS.findIndex((room) => path.startsWith(`server/${room}/`))

test('rooms of the server import one way: http, actions, notify, ingest, desired, access, store, fleet', () => {
  const offenders = productFiles.flatMap((file) =>
    importsOf(file)
      .filter(({ target }) => target !== null && serverRoomOf(file.path) >= 0 && serverRoomOf(target) > serverRoomOf(file.path))
      .map(({ specifier }) => `${file.path} imports ${specifier}`),
  )
  expectNone(offenders, 'who follows a commit reads the rooms in their order; types count as well, because a reader follows them too')
})

const mains = list('server/main.ts', 'server/program.ts', 'server/client-main.ts', 'server/worker/main.ts', 'agent/main.ts')

/** The folder of a file below server, agent or shared; `.` for the files beside them, without the entry points. */
const roomOf = (path: string): string | null => {
  const [, half = '', below = ''] = /^(server|agent|shared)\/(?:([^/]+)\/)?/.exec(path) ?? []
  return half === '' || (below === '' && mains(path)) ? null : `${half}/${below === '' ? '.' : below}`
}

test('no room of server, agent or shared imports itself through others', () => {
  const imports = new Map<string, Map<string, string>>()
  for (const file of productFiles)
    for (const { target, specifier } of importsOf(file)) {
      const [from, to] = [roomOf(file.path), target === null ? null : roomOf(target)]
      if (from === null || to === null || from === to) continue
      imports.set(from, (imports.get(from) ?? new Map()).set(to, `${file.path} imports ${specifier}`))
    }
  const cycles: string[] = []
  const done = new Set<string>()
  const visit = (room: string, above: readonly string[], why: readonly string[]): void => {
    if (above.includes(room))
      cycles.push(
        [...above.slice(above.indexOf(room)), room].join(' → ') +
          why
            .slice(above.indexOf(room))
            .map((line) => `\n    ${line}`)
            .join(''),
      )
    if (above.includes(room) || done.has(room)) return
    for (const [to, line] of imports.get(room) ?? []) visit(to, [...above, room], [...why, line])
    done.add(room)
  }
  for (const room of imports.keys()) visit(room, [], [])
  expectNone(cycles, 'a room that needs a room above it cannot be read, tested or moved alone')
})

interface Global {
  what: string
  pattern: RegExp
  allowed: Where
  instead: string
}

const GLOBALS: readonly Global[] = [
  {
    what: 'the clock',
    pattern: /\bDate\.now\b|\bnew Date\(\)|\bperformance\.now\b/,
    allowed: list('shared/runtime/clock.ts'),
    instead: 'take a Clock (or nowMs): a default would be forgotten once, in the test that then fails once a month',
  },
  {
    what: 'timers',
    pattern: /\bset(Timeout|Interval)\(|\bBun\.sleep\b/,
    allowed: list('shared/runtime/clock.ts', 'shared/runtime/watchdog.ts', 'client/client.ts'),
    instead: 'take a Clock and its sleep: it ends with the signal, and the simulation can move it',
  },
  {
    what: 'randomness',
    pattern: /\bMath\.random\b/,
    allowed: list('shared/runtime/random.ts'),
    instead: 'take a Random, so that a seed repeats a run',
  },
  {
    what: 'the environment',
    pattern: /\bprocess\.env\b|\bBun\.env\b|\bimport\.meta\.env\b/,
    allowed: mains,
    instead: 'an option of the binary’s option table; only main.ts reads the environment',
  },
  {
    what: 'the end of the process',
    pattern: /\bprocess\.(exit|abort|kill)\(/,
    // The sandbox, the runs of git and the keeper of workers end other processes, never themselves.
    allowed: (path) =>
      mains(path) ||
      /^(server|agent)\/cli\//.test(path) ||
      [
        'server/render/sandbox/process.ts',
        'server/render/sandbox/confine.ts',
        'server/render/typescript/runner.ts',
        'server/sources/git/process.ts',
        'server/control/workers/worker-process.ts',
      ].includes(path),
    instead: 'return or throw; only mains and commands decide about exit codes',
  },
]

test.each(GLOBALS.map((entry) => [`nothing but its home touches ${entry.what}`, entry] as const))(
  '%s',
  (_, { pattern, allowed, instead }) => {
    const offenders = productFiles
      .filter(({ path }) => !allowed(path) && !inFolder('server/dashboard/ui')(path)) // a page has the browser's own
      .flatMap((file) => linesMatching({ ...file, text: withoutComments(file.text) }, pattern))
    expectNone(offenders, instead)
  },
)

test('no file imports itself through others', () => {
  const edges = new Map(
    typeScriptFiles.map(
      (file) => [file.path, importsOf(file).flatMap(({ target, typeOnly }) => (target && !typeOnly ? [target] : []))] as const,
    ),
  )
  const done = new Set<string>()
  const cycles: string[] = []
  const visit = (path: string, above: readonly string[]): void => {
    if (above.includes(path)) cycles.push([...above.slice(above.indexOf(path)), path].join(' → '))
    if (done.has(path) || above.includes(path)) return
    for (const next of edges.get(path) ?? []) visit(next, [...above, path])
    done.add(path)
  }
  for (const path of edges.keys()) visit(path, [])
  expectNone(cycles, 'two files that need each other are one file, or lack a third')
})

test('relative imports name a file that exists, with its ending', () => {
  const paths = new Set(typeScriptFiles.map(({ path }) => path))
  const offenders = typeScriptFiles.flatMap((file) =>
    importsOf(file).flatMap(({ target, specifier }) =>
      target && /\.tsx?$/.test(target) && !paths.has(target) ? [`${file.path}: ${specifier}`] : [],
    ),
  )
  const endless = typeScriptFiles.flatMap((file) =>
    importsOf(file).flatMap(({ target, specifier }) =>
      target && !/\.(tsx?|js|json|so|css|html)$/.test(target) ? [`${file.path}: ${specifier}`] : [],
    ),
  )
  expectNone([...offenders, ...endless], 'an import says which file it means')
})

test('no barrels and no rooms without a subject', () => {
  const isBarrel = ({ path, text }: SourceFile) => {
    const code = withoutComments(text).trim()
    return !path.startsWith('tests/') && code !== '' && code.replace(/^export (type )?(\*|\{[^}]*\}) from '[^']+'\n?/gm, '').trim() === ''
  }
  const nameless = /(^|\/)(utils?|helpers?|common|misc|index)(\.|\/)/
  expectNone(
    typeScriptFiles.filter((file) => isBarrel(file) || nameless.test(file.path)).map(({ path }) => path),
    'import from the file that has it; a file called utils or helpers is a decision not taken',
  )
})

test('every Worker is an entry point of the binary that starts it', () => {
  const compiled = readFileSync(join(ROOT, 'scripts/build'), 'utf8')
  const workers = productFiles.filter(({ text }) => /^self\.onmessage = /m.test(text)).map(({ path }) => path)
  expect(workers).toContain('server/desired/check-worker.ts')
  expectNone(
    workers.filter((path) => !new RegExp(`^ +compile "\\$\\{to\\}skerry" .*\\$\\{from\\}${path}"`, 'm').test(compiled)),
    'from source it runs all the same; in the binary it would be found missing by the first large page',
  )
})

test('the tables above name files that exist', () => {
  const paths = new Set(productFiles.map(({ path }) => path))
  expectNone(
    Object.keys({ ...ACTING_FILES, ...PURE_ADAPTERS }).filter((path) => !paths.has(path)),
    'an exception for a file that is gone hides the next one',
  )
})
