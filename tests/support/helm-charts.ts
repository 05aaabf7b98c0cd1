// Charts packed by the real helm, and a Helm repository of them as a plain web server gives it: files with ETags.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { renderProgram } from './render-programs.ts'
import { tempDir } from './temp-dir.ts'

export interface ChartText {
  name: string
  version: string
  /** Beside Chart.yaml. */
  files?: Readonly<Record<string, string>>
}

const CONFIG_MAP = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  value: {{ .Values.value | quote }}\n'

function helmEnv(): Record<string, string> {
  const home = tempDir()
  return { HOME: home, PATH: '/usr/bin:/bin', HELM_CACHE_HOME: home, HELM_CONFIG_HOME: home, HELM_DATA_HOME: home }
}

/** Of a server in this process: it could not answer to a helm that is waited for in place. */
export async function askHelm(...args: string[]): Promise<string> {
  const child = Bun.spawn([renderProgram('helm'), ...args], { env: helmEnv(), stdout: 'pipe', stderr: 'pipe' })
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(`helm ${args[0]}: ${err}`)
  return out
}

export function runHelm(...args: string[]): string {
  const run = Bun.spawnSync([renderProgram('helm'), ...args], { env: helmEnv(), stdout: 'pipe', stderr: 'pipe' })
  if (run.exitCode !== 0) throw new Error(`helm ${args[0]}: ${run.stderr.toString()}`)
  return run.stdout.toString()
}

/** Path of the archive. */
export function packChart({ name, version, files = {} }: ChartText, into: string): string {
  const folder = join(tempDir(), name)
  const all: Record<string, string> = {
    'Chart.yaml': `apiVersion: v2\nname: ${name}\nversion: ${version}\ndescription: |\n  version: 9.9.9\n  of many words\n`,
    'values.yaml': `value: ${version}\n`,
    'templates/map.yaml': CONFIG_MAP,
    ...files,
  }
  for (const [path, text] of Object.entries(all)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  runHelm('package', folder, '--destination', into)
  return join(into, `${name}-${version}.tgz`)
}

export interface HelmRepository {
  url: string
  requests: Array<{ path: string; status: number; authorization: string | null }>
  /** Packs, and writes the index anew. */
  add(...charts: ChartText[]): void
  /** The index as it is, for those who bend it. */
  editIndex(edit: (text: string) => string): void
  /** Nobody answers: 503 to everything, or a closed port. */
  mode: 'up' | 'error' | 'away'
  /** Wanted of every request. Null means nothing. */
  authorization: string | null
  stop(): Promise<void>
}

export function createHelmRepository(options: { indexUrl?: string } = {}): HelmRepository {
  const dir = tempDir()
  const answer = (request: Request): Response => {
    const { pathname } = new URL(request.url)
    const authorization = request.headers.get('authorization')
    const [status, body, headers] = answerOf(pathname, request, authorization)
    repository.requests.push({ path: pathname, status, authorization })
    return new Response(body, { status, headers })
  }
  const answerOf = (
    pathname: string,
    request: Request,
    authorization: string | null,
  ): [number, Uint8Array<ArrayBuffer> | null, Record<string, string>] => {
    if (repository.mode !== 'up') return [503, null, {}]
    if (repository.authorization !== null && authorization !== repository.authorization) return [401, null, {}]
    const name = pathname.replace('/charts/', '')
    if (!readdirSync(dir).includes(name)) return [404, null, {}]
    const bytes = new Uint8Array(readFileSync(join(dir, name)))
    const etag = `"${Bun.hash(bytes)}"`
    return request.headers.get('if-none-match') === etag ? [304, null, { etag }] : [200, bytes, { etag }]
  }
  const serve = (port: number) => Bun.serve({ port, hostname: '127.0.0.1', fetch: answer })
  let server = serve(0)
  const port = server.port ?? 0
  let mode: HelmRepository['mode'] = 'up'
  const repository: HelmRepository = {
    url: `http://127.0.0.1:${port}/charts`,
    requests: [],
    authorization: null,
    add(...charts) {
      for (const chart of charts) packChart(chart, dir)
      runHelm('repo', 'index', dir, ...(options.indexUrl === undefined ? [] : ['--url', options.indexUrl]))
    },
    editIndex: (edit) => writeFileSync(join(dir, 'index.yaml'), edit(readFileSync(join(dir, 'index.yaml'), 'utf8'))),
    get mode() {
      return mode
    },
    set mode(to) {
      if (to === 'away' && mode !== 'away') server.stop(true)
      if (to !== 'away' && mode === 'away') server = serve(port)
      mode = to
    },
    stop: () => server.stop(true),
  }
  return repository
}
