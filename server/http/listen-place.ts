// The place that `--listen` names: an address, or a Unix socket whose file mode decides who may connect.
import { chmodSync, lstatSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { resolve } from 'node:path'
import { AppError } from '../../shared/runtime/error.ts'
import { parseAddress } from '../../shared/runtime/options.ts'

export interface UnixSocket {
  unix: string
  mode: number
}
export type ListenPlace = { hostname: string; port: number } | UnixSocket

const UNIX = 'unix:'
/** Longer paths do not fit into the address of a socket on Linux. */
const SOCKET_PATH_BYTES_MAX = 107

/** Paths are absolute in the result, because the data folder becomes the working directory. */
export function parseListen(text: string, socketMode: string): ListenPlace {
  if (!text.startsWith(UNIX)) {
    const address = parseAddress(text)
    if (address === null) throw new AppError('bad_options', { detail: `--listen ${text} is not an address` })
    return address
  }
  const unix = resolve(text.slice(UNIX.length))
  if (Buffer.byteLength(unix) > SOCKET_PATH_BYTES_MAX)
    throw new AppError('bad_options', { detail: `the path of --listen is longer than ${SOCKET_PATH_BYTES_MAX} bytes` })
  return { unix, mode: Number.parseInt(socketMode, 8) }
}

/** HT3: a socket file that a crash left behind is removed; one that a server answers on, and any other file, is not. */
export async function clearSocket(path: string): Promise<void> {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return
  if (!stats.isSocket())
    throw new AppError('bad_options', { detail: `--listen unix:${path} is not a socket`, remedy: 'Choose another path.' })
  if (await answers(path))
    throw new AppError('data_unusable', {
      detail: `unix:${path} is in use by another process`,
      remedy: 'Stop it, or choose another --listen address.',
    })
  rmSync(path)
}

const answers = (path: string): Promise<boolean> =>
  new Promise((done) => {
    const socket = connect(path)
    const end = (answered: boolean) => {
      socket.destroy()
      done(answered)
    }
    socket.once('connect', () => end(true))
    // A server whose queue is full answers with another error.
    socket.once('error', (error) => end(!('code' in error) || error.code !== 'ECONNREFUSED'))
  })

/** No other user can connect between the bind and the change of mode. */
export function bindWithMode<T>({ unix, mode }: UnixSocket, bind: () => T): T {
  const before = process.umask(0o177)
  try {
    const bound = bind()
    chmodSync(unix, mode)
    return bound
  } finally {
    process.umask(before)
  }
}
