// Removes secrets from problems: programs of others write error messages, and these may hold parts of their input.
// Pure.
import type { Problem } from '../../shared/protocol/error.ts'
import type { ConfigLayer, MergedConfig } from './config-merge.ts'

/** A secret that is "a" is no reason to take every a out of a message. */
const LENGTH_MIN = 4
/**
 * The least length of a secret's line: a text of several lines, such as a key, may appear in a message by one of them.
 */
const LINE_LENGTH_MIN = 8

/** Texts that no message has, longest first. */
export function secretTexts(config: MergedConfig, configs: Iterable<ConfigLayer>): string[] {
  const values = [config, ...configs].flatMap((layer) => [...(layer.secrets ?? [])].map((name) => layer.values[name]))
  const texts = values.filter((value) => typeof value === 'string')
  const lines = texts.flatMap((text) => text.split('\n').map((line) => line.trim())).filter(({ length }) => length >= LINE_LENGTH_MIN)
  const forms = texts.flatMap((text) => [text, Buffer.from(text).toString('base64'), JSON.stringify(text).slice(1, -1)])
  return [...new Set([...forms, ...lines])].filter(({ length }) => length >= LENGTH_MIN).sort((a, b) => b.length - a.length)
}

/** The same text with … in the place of each of the secrets. */
export const maskText = (text: string, secrets: readonly string[]): string =>
  secrets.reduce((masked, secret) => masked.replaceAll(secret, '…'), text)

/** The same problems with … in the place of each of the texts. */
export function maskProblems(problems: readonly Problem[], secrets: readonly string[]): Problem[] {
  const mask = (text: string) => maskText(text, secrets)
  return problems.map(({ path, message, excerpt, ...rest }) => ({
    ...rest,
    path: mask(path),
    message: mask(message),
    ...(excerpt === undefined ? {} : { excerpt: mask(excerpt) }),
  }))
}
