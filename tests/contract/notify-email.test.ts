// E-mail through a real SMTP server: envelope, headers, TLS, login, and which failures are for good.
import { afterEach, describe, expect, test } from 'bun:test'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { email } from '../../server/notify/sinks/email.ts'
import type { Message, Sending } from '../../server/notify/sinks/sink.ts'
import { notificationSinkSpecSchema } from '../../shared/model/notifications.ts'
import { loopbackGuard } from '../support/source-guard.ts'
import { SERVER_CERT, SERVER_PRIVATE_KEY } from '../support/test-certs.ts'

const MESSAGE: Message = {
  ...{
    dedupeKey: 'skerry-abcd1234-7.1',
    groupId: 'skerry-abcd1234-7',
    version: 1,
    severity: 'critical',
    reason: 'Degraded',
    resolved: false,
  },
  ...{ title: 'shop/web: 14 clusters Degraded', text: 'web has 0 of 3 replicas', project: 'shop', service: 'web', after: null },
  ...{ members: [], active: 14, total: 14, firstMs: 1, lastMs: 2, url: 'https://skerry.example/services/shop/web' },
}

interface Mail {
  from: string
  to: string[]
  text: string
  secure: boolean
  user: string
}
const closing: Array<() => void> = []
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

async function smtp(options: SMTPServerOptions = {}): Promise<{ port: number; mails: Mail[] }> {
  const mails: Mail[] = []
  const server = new SMTPServer({
    ...{ authOptional: true, key: SERVER_PRIVATE_KEY, cert: SERVER_CERT, logger: false },
    onAuth: ({ username, password }, _, done) =>
      password === 'pass-word-1'
        ? done(null, { user: username })
        : done(Object.assign(new Error(`no login with ${password}`), { responseCode: 535 })),
    onData(stream, session, done) {
      let text = ''
      stream.on('data', (chunk: Buffer) => {
        text += chunk.toString()
      })
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope
        const from = mailFrom === false ? '' : mailFrom.address
        mails.push({ from, to: rcptTo.map(({ address }) => address), text, secure: session.secure, user: String(session.user ?? '') })
        done()
      })
    },
    ...options,
  })
  server.on('error', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  closing.push(() => server.close())
  const address = server.server.address()
  return { port: typeof address === 'object' && address !== null ? address.port : 0, mails }
}

const send = (port: number, change: Partial<Omit<Sending, 'spec'>> & { spec?: object; message?: Message } = {}) => {
  const { spec = {}, message = MESSAGE, secrets = {}, ...sending } = change
  const own = { host: '127.0.0.1', port, tls: 'none', from: 'skerry@example.com', to: ['ops@example.com', 'oncall@example.com'], ...spec }
  return email(message, {
    spec: notificationSinkSpecSchema.parse({ email: own, auth: { secretRef: 'mail' } }),
    ...{ secrets, ref: null, addresses: loopbackGuard(), signal: AbortSignal.timeout(10_000), nowMs: 1 },
    ...sending,
  })
}

describe('e-mail', () => {
  test('NX7 goes to all recipients, and later versions answer the first', async () => {
    const { port, mails } = await smtp()
    // Versions rise while a message waits, so that the first mail is seldom of version 1.
    const { ref } = await send(port, { message: { ...MESSAGE, version: 3 } })
    const again = await send(port, { ref, message: { ...MESSAGE, version: 4, title: 'Resolved: line\r\nBcc: evil@example.com' } })
    expect(again.ref).toBe(ref)
    expect(mails.map(({ from, to }) => ({ from, to }))).toEqual(
      [1, 2].map(() => ({ from: 'skerry@example.com', to: ['ops@example.com', 'oncall@example.com'] })),
    )
    expect(mails[0]?.text).toContain('Message-ID: <skerry-abcd1234-7.3@example.com>')
    expect(mails[0]?.text).not.toContain('In-Reply-To')
    expect(mails[1]?.text).toContain('Message-ID: <skerry-abcd1234-7.4@example.com>')
    expect(mails[1]?.text).toContain('In-Reply-To: <skerry-abcd1234-7.3@example.com>')
    expect(mails[1]?.text).not.toMatch(/^Bcc:/m)
  })

  test('NX7 a login needs TLS: without it no password leaves', async () => {
    const { port, mails } = await smtp()
    const secrets = { username: 'skerry', password: 'pass-word-1' }
    await expect(send(port, { secrets })).rejects.toMatchObject({ retryable: false })
    const { port: plain } = await smtp({ disabledCommands: ['STARTTLS'] })
    await expect(send(plain, { secrets, spec: { tls: 'starttls' } })).rejects.toThrow(/TLS/)
    expect(mails).toEqual([])
  })

  test('NX7 a certificate that is not trusted ends the connection', async () => {
    const { port, mails } = await smtp()
    await expect(send(port, { spec: { tls: 'starttls', host: 'localhost' } })).rejects.toThrow(/certificate|self.signed|issuer/i)
    expect(mails).toEqual([])
  })

  test.each([
    [451, true],
    [550, false],
  ])('NX7 the answer %p is %p to try again', async (responseCode, retryable) => {
    const refuse = (done: (error: Error) => void) => done(Object.assign(new Error('not now'), { responseCode }))
    const { port } = await smtp({ onMailFrom: (_, __, done) => refuse(done) })
    await expect(send(port)).rejects.toMatchObject({ retryable })
  })

  test('NX9 a server whose address is not allowed gets no connection', async () => {
    const { port, mails } = await smtp()
    await expect(send(port, { addresses: loopbackGuard({ allowed: [] }) })).rejects.toMatchObject({ retryable: false })
    expect(mails).toEqual([])
  })
})
