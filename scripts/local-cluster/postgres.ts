// A real PostgreSQL for tests, benchmarks and the demo: Debian's program, in a folder of its own, on loopback, as the
// user postgres when we are root (it refuses root). Passwords are real (scram), commits are synced. It ends with us,
// also when we are killed.
import { randomBytes } from 'node:crypto'
import { chmodSync, chownSync, existsSync, mkdirSync, statfsSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { createDataFolder, freePort } from './child-process.ts'

const BIN = resolve(import.meta.dir, '../../build/postgres/bin')
/** After a crash every file is synced first, which takes its time on a busy disk. */
const START_TIMEOUT_MS = 60_000

/** The default order of text in a database. Skerry's own columns say theirs, so it must not matter. */
export type DatabaseOrder = 'C' | 'en-US'

export interface DatabaseOptions {
  order?: DatabaseOrder
  /** A folder for its files, for example on a small disk. */
  dir?: string
  /** URL of a database that nobody uses: the new one begins with its order and with what is in it. */
  copyOf?: string
}

export interface LocalPostgres {
  readonly port: number
  /** Where its socket is. */
  readonly socketDir: string
  /** A fresh database of its own role, as an operator would give it; the URL has the password in it. */
  createDatabase(options?: DatabaseOptions): Promise<string>
  /** As the superuser, in the database of that URL; answers the rows, their columns separated by `|`. */
  query(url: string, sql: string): Promise<string[]>
  /** A copy of the present database; it must not be in use then, nor during the restore. */
  takeCopy(url: string): Promise<{ putBack(): Promise<void> }>
  /** Ends it as a host that goes down does: everybody is cut off. */
  crash(): Promise<void>
  /** Starts it again after `crash`, at the same port. */
  restart(): Promise<void>
  stop(): Promise<void>
}

interface Runner {
  /** Before each command. */
  prefix: string[]
  uid: number | undefined
  gid: number | undefined
}

/** PostgreSQL refuses to run as root, so root hands over to the user that Debian's package made. */
function createRunner(): Runner {
  if (process.getuid?.() !== 0) return { prefix: [], uid: undefined, gid: undefined }
  const idOf = (flag: string) => Number(Bun.spawnSync(['id', flag, 'postgres']).stdout.toString())
  const [uid, gid] = [idOf('-u'), idOf('-g')]
  if (!(uid > 0 && gid > 0)) throw new Error('there is no user postgres to run PostgreSQL as: run scripts/setup --postgres')
  return { prefix: ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', '--'], uid, gid }
}

/** Others must be able to enter every folder above; scripts/check runs its stages in one that only root can enter. */
function reachableTemp(runner: Runner): string {
  for (let path = tmpdir(); path !== '/'; path = dirname(path)) {
    if (runner.uid !== undefined && (statSync(path).mode & 0o001) === 0) chmodSync(path, statSync(path).mode | 0o011)
  }
  return tmpdir()
}

interface PostgresOptions {
  /** The certificate for TLS clients, and its key; the server also listens on 127.0.0.2 then. */
  tls?: { cert: string; key: string }
  /** For many small databases that are soon thrown away, if there is memory: a disk that others use takes half a minute
   *  to remove them. */
  inMemory?: boolean
}

const MEMORY = '/dev/shm'
const MEMORY_BYTES_MIN = 4e9
function parentFolder(inMemory: boolean): string {
  if (!inMemory || !existsSync(MEMORY)) return tmpdir()
  const { bavail, bsize } = statfsSync(MEMORY)
  return bavail * bsize < MEMORY_BYTES_MIN ? tmpdir() : MEMORY
}

export async function startPostgres({ tls, inMemory = false }: PostgresOptions = {}): Promise<LocalPostgres> {
  if (!existsSync(join(BIN, 'postgres'))) throw new Error('build/postgres is missing: run scripts/setup --postgres')
  const runner = createRunner()
  reachableTemp(runner)
  const folder = createDataFolder('skerry-postgres', parentFolder(inMemory))
  const port = freePort()
  const adminPassword = randomBytes(12).toString('hex')
  const data = join(folder.path, 'data')
  let server: Bun.Subprocess<'pipe', 'ignore', 'ignore'> | undefined
  let made = 0

  const own = (path: string) => {
    if (runner.uid !== undefined && runner.gid !== undefined) chownSync(path, runner.uid, runner.gid)
  }
  const ownFile = (path: string, text: string) => {
    writeFileSync(path, text, { mode: 0o600 })
    own(path)
  }
  const tool = async (name: string, args: readonly string[], env: Record<string, string> = {}, stdin = ''): Promise<string> => {
    const child = Bun.spawn([...runner.prefix, join(BIN, name), ...args], {
      cwd: folder.path,
      stdin: Buffer.from(stdin),
      stdout: 'pipe',
      stderr: 'pipe',
      env: { PATH: process.env['PATH'] ?? '', LC_ALL: 'C', ...env },
    })
    const [out, err, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited])
    if (code !== 0) throw new Error(`${name}: exit code ${code}\n${err}${out}`)
    return out
  }
  const psql = async (database: string, sql: string): Promise<string[]> => {
    const address = ['-h', '127.0.0.1', '-p', String(port), '-U', 'postgres', '-d', database]
    const out = await tool('psql', [...address, '-X', '-A', '-t', '-q', '-v', 'ON_ERROR_STOP=1'], { PGPASSWORD: adminPassword }, sql)
    return out.split('\n').filter(Boolean)
  }
  const start = async () => {
    // A shell that waits for our end of its pipe to close: then it ends the server at once, however we ended. If the
    // shell is killed, the kernel does the same.
    const watched = 'setpriv --pdeathsig QUIT "$@" >"$LOG" 2>&1 & server=$!; cat >/dev/null; kill -QUIT $server 2>/dev/null; wait $server'
    server = Bun.spawn([...runner.prefix, 'sh', '-c', watched, 'postgres', join(BIN, 'postgres'), '-D', data], {
      cwd: folder.path,
      stdin: 'pipe',
      stdout: 'ignore',
      stderr: 'ignore',
      detached: true,
      env: { PATH: process.env['PATH'] ?? '', LC_ALL: 'C', LOG: join(folder.path, 'postgres.log') },
    })
    const deadline = performance.now() + START_TIMEOUT_MS
    const ready = () =>
      Bun.spawn([join(BIN, 'pg_isready'), '-q', '-h', '127.0.0.1', '-p', String(port)], { stdio: ['ignore', 'ignore', 'ignore'] })
    while ((await ready().exited) !== 0) {
      if (performance.now() > deadline)
        throw new Error(`PostgreSQL does not start:\n${await Bun.file(join(folder.path, 'postgres.log')).text()}`)
      await Bun.sleep(20)
    }
  }
  const crash = async () => {
    server?.stdin.end()
    await server?.exited
    server = undefined
  }
  const stop = async () => {
    await crash()
    await folder.remove()
  }

  try {
    own(folder.path)
    const passwordFile = join(folder.path, 'password')
    ownFile(passwordFile, adminPassword)
    await tool('initdb', [
      '-D',
      data,
      '--no-sync',
      '-A',
      'scram-sha-256',
      '--pwfile',
      passwordFile,
      '-U',
      'postgres',
      '--locale=C',
      '-E',
      'UTF8',
    ])
    writeFileSync(join(data, 'postgresql.auto.conf'), configuration(port, folder.path, tls !== undefined))
    if (tls !== undefined) {
      ownFile(join(data, 'server.crt'), tls.cert)
      ownFile(join(data, 'server.key'), tls.key)
    }
    mkdirSync(join(folder.path, 'socket'))
    own(join(folder.path, 'socket'))
    await start()
  } catch (error) {
    await stop()
    throw error
  }
  return {
    port,
    socketDir: join(folder.path, 'socket'),
    createDatabase: async ({ order = 'C', dir, copyOf } = {}) => {
      const name = `fleet_${++made}`
      const password = randomBytes(12).toString('hex')
      // Files are copied with half the work that goes through the log.
      const template = copyOf === undefined ? 'template0' : `${databaseOf(copyOf)} strategy file_copy`
      const how = order === 'C' || copyOf !== undefined ? '' : ` locale_provider icu icu_locale '${order}'`
      // A copy's tables belong to the role of the other database.
      const owning = copyOf === undefined ? '' : ` in role ${databaseOf(copyOf)}`
      if (dir !== undefined) {
        own(dir)
        await psql('postgres', `create tablespace ${name} location '${dir}'`)
      }
      const where = dir === undefined ? '' : ` tablespace ${name}`
      await psql(
        'postgres',
        `create role ${name} login password '${password}'${owning};
         create database ${name} owner ${name} template ${template}${how}${where};`,
      )
      return `postgres://${name}:${password}@127.0.0.1:${port}/${name}`
    },
    takeCopy: async (url) => {
      const name = databaseOf(url)
      const copy = `${name}_copy_${++made}`
      const alone = `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}';`
      await psql('postgres', `${alone} create database ${copy} template ${name};`)
      return {
        putBack: async () => {
          await psql('postgres', `${alone} drop database ${name}; create database ${name} owner ${name} template ${copy};`)
        },
      }
    },
    query: (url, sql) => psql(databaseOf(url), sql),
    crash,
    restart: start,
    stop,
  }
}

const databaseOf = (url: string): string => new URL(url).pathname.slice(1)

/** Whether servers of tests keep their fleet store in PostgreSQL: the end-to-end tests run once with each. */
export const postgresIsWanted = (): boolean => process.env['SKERRY_TEST_STORE'] === 'postgres'

/** Synced commits as in production; small, because several run at once. */
const configuration = (port: number, folder: string, tls: boolean): string => `
listen_addresses = '${tls ? '127.0.0.1,127.0.0.2' : '127.0.0.1'}'
port = ${port}
unix_socket_directories = '${join(folder, 'socket')}'
fsync = on
shared_buffers = 32MB
max_connections = 200
max_wal_size = 256MB
jit = off
log_min_messages = warning
dynamic_shared_memory_type = mmap
ssl = ${tls ? 'on' : 'off'}
`
