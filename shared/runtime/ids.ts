import { z } from 'zod'

/** Assigned by the server at the first join: `c-` and 16 hex digits. Names may change hands, ids never do. */
export const clusterIdSchema = z
  .string()
  .regex(/^c-[0-9a-f]{16}$/)
  .brand<'ClusterId'>()
export type ClusterId = z.infer<typeof clusterIdSchema>

/** One agent key: `a-` and 16 hex digits. */
export const agentIdSchema = z
  .string()
  .regex(/^a-[0-9a-f]{16}$/)
  .brand<'AgentId'>()
export type AgentId = z.infer<typeof agentIdSchema>

export const NAME_LENGTH_MAX = 63
/** A DNS label: what projects, repositories, services and clusters are called. */
export const nameSchema = z
  .string()
  .max(NAME_LENGTH_MAX, `at most ${NAME_LENGTH_MAX} characters`)
  .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, 'expected lower-case letters, digits and "-", beginning and ending with a letter or digit')

/** `<project>/<service>`: the key of a service wherever one string must name it. */
export interface ServiceId {
  project: string
  service: string
}
export const serviceKey = (id: ServiceId): string => `${id.project}/${id.service}`
export function parseServiceKey(key: string): ServiceId {
  const slash = key.indexOf('/')
  return { project: key.slice(0, slash), service: key.slice(slash + 1) }
}

/** How a message names another service (AZ4). The server finds the name by this form, and hides it from callers who may
 *  not read the service. */
export const serviceText = (key: string): string => `service ${key}`

/** Agents of earlier versions wrote `the service P/S` and `waiting for P/S`. */
const NAMED = /(\bwaiting for (?:the removal of )?)?(\b(?:the )?service )?\b([a-z0-9][-a-z0-9]*)\/([a-z0-9][-a-z0-9]*)/g
const HIDDEN = 'a service that you may not read'

/** The message without the names of services that are not shown. */
export const hideServices = (message: string, isShown: (id: ServiceId) => boolean): string =>
  message.replace(NAMED, (text, waits = '', named = '', project: string, service: string) =>
    (waits === '' && named === '') || isShown({ project, service }) ? text : `${waits}${HIDDEN}`,
  )
