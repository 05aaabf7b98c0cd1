// Profiles of the running agent, on the socket in its data folder. A user who can open the socket can read everything
// that the agent knows.
import type { Profiler } from '../../shared/adapters/profiler.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { AppError, problemBody, statusOf } from '../../shared/runtime/error.ts'
import { describeError } from '../../shared/runtime/loop.ts'

export const PROFILES = ['cpu', 'heap', 'heap-snapshot'] as const
export type ProfileKind = (typeof PROFILES)[number]
const PREFIX = '/profile/'

export type LocalProfiles = (request: Request) => Promise<Response | null>

/** Returns null for other requests. The profiler is loaded at the first request. */
export function createLocalProfiles(): LocalProfiles {
  let loaded: Promise<{ profiler: Profiler; most: number; usual: number }> | undefined
  const load = async () => {
    const { createProfiler, PROFILE_SECONDS_DEFAULT, PROFILE_SECONDS_MAX } = await import('../../shared/adapters/profiler.ts')
    return { profiler: createProfiler(systemClock), most: PROFILE_SECONDS_MAX, usual: PROFILE_SECONDS_DEFAULT }
  }
  return async (request) => {
    const { pathname, searchParams } = new URL(request.url)
    const kind = PROFILES.find((known) => pathname === `${PREFIX}${known}`)
    if (kind === undefined) return null
    try {
      loaded ??= load()
      const { profiler, most, usual } = await loaded
      const seconds = Number(searchParams.get('seconds') ?? usual)
      if (!Number.isInteger(seconds) || seconds < 1 || seconds > most)
        throw new AppError('bad_request', { doing: 'profile', detail: `seconds: expected a whole number from 1 to ${most}` })
      const text = kind === 'cpu' ? profiler.cpu(seconds, request.signal) : kind === 'heap' ? profiler.heap() : profiler.snapshot()
      return new Response(await text, { headers: { 'content-type': 'application/json' } })
    } catch (error) {
      const told = error instanceof AppError ? error : new AppError('internal', { doing: 'profile', detail: describeError(error) })
      return Response.json(problemBody(told), { status: statusOf(told) })
    }
  }
}
