// An error of ours of a git program that failed: where, what it said as far as that is safe to repeat, and what to do.
import { AppError } from '../../../shared/runtime/error.ts'
import { NO_REPOSITORY } from './http.ts'
import { knownName, knownState } from './known-hosts.ts'
import { scanLine } from './private.ts'
import type { GitDone } from './process.ts'
import { type GitProblem, readProblem } from './program-errors.ts'
import type { SshPlace } from './url.ts'

export interface Failed {
  doing: string
  place: string
  host: string
  ssh: SshPlace | null
  /** For messages: the credential that was shown. */
  tried(): Promise<string>
  knownHosts(): Promise<string>
}

export async function programFailure({ stderr, exitCode, stopped }: GitDone, failed: Failed): Promise<AppError> {
  const { doing, place, host } = failed
  if (stopped?.why === 'limit') return new AppError('git_failed', { detail: `${doing}: ${place} ${stopped.message}` })
  if (stopped !== null) return new AppError('git_unreachable', { detail: `the Git server ${host} ${doing}: ${stopped.message}` })
  const problem = readProblem(stderr)
  switch (problem.kind) {
    case 'unreachable':
      return new AppError('git_unreachable', { detail: `the Git server ${host} ${problem.why}` })
    case 'host_key':
      return hostKeyFailure(problem, failed, failed.ssh === null ? 'known' : knownState(await failed.knownHosts(), failed.ssh))
    case 'refused':
      return new AppError('credential_refused', {
        detail: `${host}: ${problem.why}; tried: ${await failed.tried()}`,
        remedy: 'Set a key or credential that this host accepts for the repository in the Config of spec.git.auth.secretRef.',
      })
    case 'redirected':
      return new AppError('git_failed', { detail: `${doing}: ${place}: the server redirects; use the URL that it redirects to` })
    case 'no_repository':
      return new AppError('git_failed', { detail: `${doing}: ${place}: the repository does not exist`, remedy: NO_REPOSITORY })
    case 'disk_full':
      return new AppError('disk_full', { doing: `${doing}: ${place}` })
    default: {
      const why = problem.kind === 'failed' && problem.why !== '' ? problem.why : `git ended with exit code ${exitCode}`
      return new AppError('git_failed', { detail: `${doing}: ${place}: ${why}` })
    }
  }
}

function hostKeyFailure(
  { shown, isChanged }: GitProblem & { kind: 'host_key' },
  { host, ssh }: Failed,
  state: ReturnType<typeof knownState>,
): AppError {
  const key = shown === null ? '' : `: ${shown}`
  const lines = ssh === null ? 'its lines' : `the output of \`${scanLine(ssh)}\``
  const lacks = {
    unread: 'knownHosts has no valid line',
    other: `knownHosts has no entry for ${ssh === null ? host : knownName(ssh)}`,
    known: 'knownHosts has no key of this type for it',
  }[state]
  const compare = 'Compare it with the published fingerprints of the host.'
  return isChanged
    ? new AppError('credential_refused', {
        detail: `${host} shows another host key than the one in knownHosts${key}`,
        remedy: `${compare} If it is one of them, replace the old lines in knownHosts by ${lines}; if not, someone may impersonate the host.`,
      })
    : new AppError('credential_refused', {
        detail: `${host} shows a host key, and ${lacks}${key}`,
        remedy: `${compare} If it is one of them, add ${lines} to knownHosts; if not, someone may impersonate the host.`,
      })
}
