// E-mail by SMTP. The name of the server goes through the address guard, and the connection to the address that was
// checked; its certificate must be for the name.
import { isIP } from 'node:net'
import { createTransport } from 'nodemailer'
import { AppError } from '../../../shared/runtime/error.ts'
import { redacted, refusedText } from './http.ts'
import { type Message, type Sink, SinkError, secretOf } from './sink.ts'

const TIMEOUT_MS = 15_000

/** SMTP: answers 4xx are temporary, 5xx permanent. */
const isForGood = (error: unknown): boolean =>
  error instanceof Error && 'responseCode' in error && typeof error.responseCode === 'number' && error.responseCode >= 500

export const email: Sink = async (message, sending) => {
  const { secrets, spec, addresses } = sending
  if (spec.email === undefined) throw new SinkError('spec.email is missing', { retryable: false })
  const { host, port, tls, from, to } = spec.email
  const hasLogin = secrets['username'] !== undefined
  if (hasLogin && tls === 'none')
    throw new SinkError('a password is not sent without TLS; set spec.email.tls to starttls or implicit', { retryable: false })
  try {
    const address = await addresses.allowedAddress(host)
    const transport = createTransport({
      ...{ host: address, port, secure: tls === 'implicit', requireTLS: tls === 'starttls', ignoreTLS: tls === 'none' },
      tls: isIP(host) === 0 ? { servername: host } : {},
      ...(hasLogin ? { auth: { user: secretOf(sending, 'username'), pass: secretOf(sending, 'password') } } : {}),
      ...{
        connectionTimeout: TIMEOUT_MS,
        greetingTimeout: TIMEOUT_MS,
        socketTimeout: TIMEOUT_MS,
        disableFileAccess: true,
        disableUrlAccess: true,
      },
    })
    try {
      const domain = from.split('@')[1] ?? 'skerry'
      // NX7: an ID of its own for each version, since mail servers drop a mail whose ID they have seen; later ones
      // answer the first that was taken.
      const messageId = `<${message.groupId}.${message.version}@${domain}>`
      const first = sending.ref
      const info = await transport.sendMail({
        ...{ from, to: [...to], subject: message.title, text: bodyOf(message) },
        messageId,
        ...(first === null ? {} : { inReplyTo: idOf(first, domain), references: [idOf(first, domain)] }),
        headers: { 'X-Skerry-Severity': message.severity, 'Auto-Submitted': 'auto-generated' },
      })
      return { ref: first ?? messageId, detail: info.response }
    } finally {
      transport.close()
    }
  } catch (error) {
    if (error instanceof SinkError) throw error
    const retryable = !(error instanceof AppError) && !isForGood(error)
    const said = error instanceof AppError ? refusedText(error) : error instanceof Error ? error.message : String(error)
    throw new SinkError(`${host}:${port}: ${redacted(said, secrets)}`, { retryable })
  }
}

/** A server of before kept the id of the group, which was the ID of its first mail. */
const idOf = (first: string, domain: string): string => (first.startsWith('<') ? first : `<${first}@${domain}>`)

const bodyOf = ({ text, url, severity, reason }: Message): string => `${text}\n\nSeverity: ${severity}\nReason: ${reason}\n${url}\n`
