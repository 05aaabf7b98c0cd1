// `skerry server`: from flags and environment to a running server, and what a person sees of it at the terminal.
import { resolve } from 'node:path'
import { disableCoreDumps } from '../shared/adapters/core-dumps.ts'
import { loadNativeLibrary } from '../shared/adapters/crdt-db.ts'
import { openDataFolder } from '../shared/adapters/data-folder.ts'
import { createNativeGuard } from '../shared/adapters/native-guard.ts'
import { createPinoLogger } from '../shared/adapters/pino-logger.ts'
import { openRunRecord } from '../shared/adapters/run-record.ts'
import { openTelemetry } from '../shared/adapters/telemetry.ts'
import { VERSION } from '../shared/runtime/build-info.ts'
import { systemClock } from '../shared/runtime/clock.ts'
import { AppError } from '../shared/runtime/error.ts'
import { describeError } from '../shared/runtime/loop.ts'
import { envName, flagName, parseAddress, readOptions } from '../shared/runtime/options.ts'
import { systemRandom } from '../shared/runtime/random.ts'
import { checkTokenFile } from './access/api-tokens.ts'
import { loadSopsKeys } from './access/sops-keys.ts'
import { planBackups } from './backup/archive/options.ts'
import { readRenderPlace, renderLacks } from './control/render-place.ts'
import { type ListenPlace, parseListen } from './http/listen-place.ts'
import type { TlsPaths } from './http/tls-files.ts'
import { readKeyService } from './key-service.ts'
import type { Series } from './observe/fleet-gauges.ts'
import { libraryDirOf, type RunningServer, startServer } from './server.ts'
import { readSignInPlace } from './sign-in-place.ts'
import { parseRanges } from './sources/address/range.ts'
import { readStorePlace } from './store/store-place.ts'
import { readKubernetesPlace } from './values/kubernetes-values.ts'
import { SERVER_OPTIONS } from './verbs/server-options.ts'

export interface ServeIo {
  env: Record<string, string | undefined>
  out(text: string): void
  err(text: string): void
  onStop(listener: (signal: string) => void): void
}

/** Runs until it is stopped. 0: stopped on request; 1: it could not start; 2: wrong options. */
export async function serve(flags: Record<string, string | boolean | undefined>, io: ServeIo): Promise<number> {
  const read = readOptions(SERVER_OPTIONS, flags, io.env)
  if (read.kind === 'problems') {
    for (const { path, message } of read.problems) io.err(`error: ${path} ${message}\n`)
    return 2
  }
  const { data, store, storeFile, adminTokenFile, externalUrl, trustedProxies, sourceAddresses, sopsKeys, recount, logLevel, ...more } =
    read.options
  const {
    metricsListen,
    metricsSeries,
    listen,
    socketMode,
    requestsPerSecond,
    tlsCert,
    tlsKey,
    oidcConfig,
    keyService,
    valueFiles,
    valueSecrets,
    renderSandbox,
    helm,
    helm3,
    kustomize,
    renderers,
    workers,
    workerMemory,
    auditRetention,
    backupInto,
    backupSchedule,
    backupRecipients,
    backupKeep,
    backupUnencrypted,
    ...retention
  } = more
  const tokenFile = adminTokenFile === undefined ? undefined : resolve(adminTokenFile) // the data folder becomes the working directory
  const proxyNames = (trustedProxies ?? '').split(',').map((name) => name.trim())
  const metricsAddress = metricsListen === undefined ? undefined : parseAddress(metricsListen)
  if (metricsAddress === null) return 2
  const allowed = parseRanges(sourceAddresses ?? '')
  const proxies = parseRanges(proxyNames.filter((name) => name !== SOCKET_PROXY).join(','))
  for (const [option, { wrong }] of [['sourceAddresses', allowed] as const, ['trustedProxies', proxies] as const]) {
    if (wrong.length === 0) continue
    io.err(`error: ${flagName(option)} (${envName(option)}) expected addresses or ranges such as 10.0.0.0/8, not ${wrong.join(', ')}\n`)
    return 2
  }
  const log = createPinoLogger(logLevel as 'debug' | 'info' | 'warn' | 'error')
  if (!disableCoreDumps()) log.warn('core dumps cannot be disabled; they would hold secrets')
  let release = () => {}
  try {
    const listenPlace = parseListen(listen, socketMode)
    const tls = readTlsPaths(tlsCert, tlsKey, listenPlace)
    const place = readStorePlace({ url: store, asFlag: flags['store'] !== undefined, file: storeFile, env: io.env })
    const signIn = oidcConfig === undefined ? undefined : readSignInPlace(oidcConfig)
    const service = keyService === undefined ? undefined : readKeyService(keyService, systemClock, fetch)
    const kubernetes = valueSecrets ? readKubernetesPlace(io.env) : undefined
    if (kubernetes === null)
      throw new AppError('bad_options', {
        detail: '--value-secrets works only in a Pod',
        remedy: 'Omit it, or run the server in a cluster.',
      })
    const rendering = readRenderPlace({ renderSandbox, helm, helm3, kustomize, renderers }, io.env)
    const backups = planBackups(
      { backupInto, backupSchedule, backupRecipients, backupKeep, backupUnencrypted },
      { dataDir: resolve(data), place },
      io.env,
    )
    const ownSopsKeys = sopsKeys === undefined ? undefined : await loadSopsKeys(resolve(sopsKeys))
    const folder = openDataFolder(data)
    const run = openRunRecord(folder.path, { clock: systemClock, log })
    release = () => {
      run.end()
      folder.unlock()
    }
    const libraryDir = libraryDirOf(folder.path)
    loadNativeLibrary(libraryDir)
    const guard = createNativeGuard({ run, libraryDir, deathsMax: DEATHS_MAX })
    if (tokenFile !== undefined) await checkTokenFile(tokenFile)
    const options = {
      dataDir: folder.path,
      store: place,
      rendering,
      retention,
      ...(backups === null ? {} : { backups }),
      auditDays: auditRetention,
      recount,
      ...('unix' in listenPlace ? { ...NO_ADDRESS, socket: listenPlace } : listenPlace),
      tls,
      requestsPerSecond,
      sourceAddresses: sourceAddresses ?? '',
      ...(ownSopsKeys === undefined ? {} : { sopsKeys: ownSopsKeys }),
      trustedProxies: proxies.ranges,
      trustsSocket: proxyNames.includes(SOCKET_PROXY),
      workers,
      workerMemoryMib: workerMemory,
      env: io.env,
      ...(signIn === undefined ? {} : { signIn }),
      ...(service === undefined ? {} : { keyService: service }),
      ...(valueFiles === undefined ? {} : { valueFiles: resolve(valueFiles) }),
      ...(kubernetes === undefined ? {} : { valueSecrets: kubernetes }),
      metrics: { series: metricsSeries as Series, ...(metricsAddress === undefined ? {} : { listen: metricsAddress }) },
      ...(externalUrl === undefined ? {} : { externalUrl }),
      ...(tokenFile === undefined ? {} : { adminTokenFile: tokenFile }),
    }
    const telemetry = await openTelemetry({ env: io.env, service: 'skerry', clock: systemClock, log })
    const server = await startServer(options, {
      ...{ clock: systemClock, random: systemRandom, log, guard, freeMemory: () => Bun.gc(false) },
      ...(telemetry === null ? {} : { recordSpan: telemetry.record }),
    })
    const signal = new Promise<string>((resolve) => io.onStop(resolve)) // before anybody is told that it serves
    for (const { program, without } of renderLacks(rendering)) log.warn(`${program} is not installed: ${without}`, {})
    showToken(server, io)
    const why = await Promise.race([signal, server.failed])
    log.info('stopping', typeof why === 'string' ? { signal: why } : { error: describeError(why) })
    await server.stop()
    await telemetry?.stop()
    if (typeof why !== 'string') throw why
    return 0
  } catch (error) {
    const told = isPortInUse(error)
      ? new AppError('data_unusable', {
          detail: `${listen} is in use by another process`,
          remedy: 'Stop it, or choose another --listen address.',
        })
      : error
    io.err(`skerry server: ${describeError(told)}\n${told instanceof AppError ? `${told.remedy}\n` : ''}`)
    return told instanceof AppError && told.code === 'bad_options' ? 2 : 1
  } finally {
    release()
  }
}

/** In `--trusted-proxies`: the peer of a Unix socket. */
const SOCKET_PROXY = 'unix'

const NO_ADDRESS = { hostname: '', port: 0 }

/** Absolute: the data folder becomes the working directory. */
function readTlsPaths(cert: string | undefined, key: string | undefined, place: ListenPlace): TlsPaths | null {
  if (cert === undefined && key === undefined) return null
  if (cert === undefined || key === undefined)
    throw new AppError('bad_options', { detail: `${cert === undefined ? '--tls-cert' : '--tls-key'} is missing`, remedy: 'Give both.' })
  if ('unix' in place)
    throw new AppError('bad_options', { detail: '--tls-cert and a Unix socket exclude each other', remedy: 'Remove one of them.' })
  return { cert: resolve(cert), key: resolve(key) }
}

/** A shard file is rebuilt at once from the fleet store. */
const DEATHS_MAX = 1

const isPortInUse = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'EADDRINUSE'

/** AP2: the path alone, because this text may end in a log. */
function showToken({ firstAdminToken, adminTokenFile, url }: RunningServer, io: ServeIo): void {
  io.out(`skerry ${VERSION} serves ${url}\n`)
  if (firstAdminToken === null) return
  const path = shellWord(adminTokenFile)
  io.out(`
The first admin token is in ${adminTokenFile} (readable by this user only). It expires in 24 hours; exchange it for one that does not:

  export SKERRY_SERVER=${url}
  export SKERRY_TOKEN=$(skerry token exchange --token-file ${path}) && rm ${path}
  skerry join-token create            # then start an agent with it
  skerry apply -f FILE                # repositories and services
`)
}

const shellWord = (text: string): string => (/^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)
