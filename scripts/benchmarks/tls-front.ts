// A stand-in for a reverse proxy before a server on plain HTTP: TLS in front, with a certificate of a CA made here, and
// TCP behind. It reads no content.
import { constants } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Socket } from 'bun'

export interface TlsFront {
  port: number
  caPem: string
  stop(): void
}

interface Pipe {
  server: Socket<undefined> | null
  waiting: Uint8Array[]
}

export async function startTlsFront(dir: string, targetPort: number): Promise<TlsFront> {
  const { key, cert, ca } = await makeCertificates(dir)
  const listener = Bun.listen<Pipe>({
    hostname: '127.0.0.1',
    port: 0,
    tls: { key, cert, secureOptions: constants.SSL_OP_NO_TICKET },
    socket: {
      open(client) {
        const pipe: Pipe = { server: null, waiting: [] }
        client.data = pipe
        void Bun.connect<undefined>({
          hostname: '127.0.0.1',
          port: targetPort,
          socket: {
            open(server) {
              pipe.server = server
              for (const chunk of pipe.waiting.splice(0)) server.write(chunk)
            },
            data: (_, chunk) => void client.write(chunk),
            close: () => void client.end(),
            error: () => void client.end(),
          },
        })
      },
      // The amounts here are far below the buffer of a socket.
      data({ data: pipe }, chunk) {
        if (pipe.server === null) pipe.waiting.push(new Uint8Array(chunk))
        else pipe.server.write(chunk)
      },
      close: ({ data: pipe }) => void pipe?.server?.end(),
      error: ({ data: pipe }) => void pipe?.server?.end(),
    },
  })
  return { port: listener.port, caPem: ca, stop: () => listener.stop(true) }
}

/** A CA and a leaf for localhost, P-256, as most are today. */
async function makeCertificates(dir: string): Promise<{ key: string; cert: string; ca: string }> {
  const at = (name: string) => join(dir, name)
  const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  writeFileSync(at('leaf.ext'), 'subjectAltName=DNS:localhost\n')
  await openssl('req', '-x509', ...ec, '-days', '2', '-subj', '/CN=bench CA', '-keyout', at('ca.key'), '-out', at('ca.pem'))
  await openssl('req', ...ec, '-subj', '/CN=localhost', '-keyout', at('leaf.key'), '-out', at('leaf.csr'))
  const from = ['-in', at('leaf.csr'), '-CA', at('ca.pem'), '-CAkey', at('ca.key'), '-CAcreateserial', '-extfile', at('leaf.ext')]
  await openssl('x509', '-req', ...from, '-days', '2', '-out', at('leaf.pem'))
  const read = (name: string) => readFileSync(at(name), 'utf8')
  return { key: read('leaf.key'), cert: read('leaf.pem'), ca: read('ca.pem') }
}

async function openssl(...args: string[]): Promise<void> {
  const child = Bun.spawn(['openssl', ...args], { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' })
  const errors = await new Response(child.stderr).text()
  if ((await child.exited) !== 0) throw new Error(`openssl ${args[0]}: ${errors}`)
}
