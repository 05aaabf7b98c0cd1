// Every error code that a person or a peer can meet, with its cause and remedy in one place. HTTP bodies are RFC 9457 problems made from it.
import { z } from 'zod'

interface ErrorEntry {
  status: number
  retryable: boolean
  /** What is wrong, in words of somebody who never saw the code. */
  cause: string
  /** What to do next. */
  remedy: string
}

const define = <const T extends Record<string, ErrorEntry>>(table: T) => table

export const ERRORS = define({
  bad_request: {
    status: 400,
    retryable: false,
    cause: 'The request is not of the form that this route takes.',
    remedy: 'Compare it with the OpenAPI document under /api/v1/openapi.json.',
  },
  invalid_resource: {
    status: 422,
    retryable: false,
    cause: 'A resource has fields that are unknown, missing or of the wrong type.',
    remedy: 'Mend the fields that are named and send it again; nothing was changed.',
  },
  too_large: {
    status: 413,
    retryable: false,
    cause: 'The body is larger than this route takes.',
    remedy: 'Send it in smaller pieces; the limit is named in the detail.',
  },
  unauthorized: {
    status: 401,
    retryable: false,
    cause: 'The request carries no credential, or one that is unknown or expired.',
    remedy: 'Set SKERRY_TOKEN or --token to a valid API token.',
  },
  not_found: { status: 404, retryable: false, cause: 'There is nothing of that name.', remedy: 'List what there is with `skerry get`.' },
  conflict: {
    status: 409,
    retryable: false,
    cause: 'The resource changed since it was read.',
    remedy: 'Read it again and repeat the change.',
  },
  in_use: {
    status: 409,
    retryable: false,
    cause: 'Something else still refers to it.',
    remedy: 'Change or delete first what still refers to it: the message names it.',
  },
  internal: {
    status: 500,
    retryable: true,
    cause: 'The server met an error of its own.',
    remedy: 'Try again; if it stays, read the server log at the time of the answer.',
  },
  unavailable: {
    status: 503,
    retryable: true,
    cause: 'The other side is starting, stopping or overloaded.',
    remedy: 'Nothing to do: it is tried again.',
  },
  too_many_requests: {
    status: 429,
    retryable: true,
    cause: 'Too many requests at once.',
    remedy: 'Nothing to do: it is tried again after the time named.',
  },

  join_token_unknown: {
    status: 401,
    retryable: false,
    cause: 'The server knows no such join token.',
    remedy: 'Make a new one with `skerry join-token create` and start the agent with it.',
  },
  join_token_expired: {
    status: 401,
    retryable: false,
    cause: 'The join token has expired.',
    remedy: 'Make a new one with `skerry join-token create` and start the agent with it.',
  },
  join_token_used_up: {
    status: 401,
    retryable: false,
    cause: 'The join token was used as often as it allows.',
    remedy: 'Make a new one with `skerry join-token create --uses N`.',
  },
  join_proof_invalid: {
    status: 401,
    retryable: false,
    cause: 'The join request is not signed by the key that it brings.',
    remedy: 'Start the agent with an empty state folder, so that it makes a new key.',
  },
  join_name_taken: {
    status: 409,
    retryable: false,
    cause: 'A cluster of that name has joined already with another key.',
    remedy: 'Choose another --cluster name, or remove the old one with `skerry delete cluster NAME`.',
  },
  server_key_mismatch: {
    status: 502,
    retryable: false,
    cause: 'The server that answered does not hold the key whose fingerprint is in the join token, or what it said was changed on the way.',
    remedy: 'Check the server address; if it is right, something between agent and server is impersonating it.',
  },
  link_insecure: {
    status: 400,
    retryable: false,
    cause:
      'The server’s address is http:// on another host: whoever is on the way reads sessions and manifests, and can answer in the server’s place.',
    remedy:
      'Use the https:// address of the server. On a network that protects the link by other means, start the agent with --insecure-http. Enforcement goes on meanwhile.',
  },
  session_required: {
    status: 401,
    retryable: true,
    cause: 'The request carries no valid session.',
    remedy: 'Sign the nonce in the answer and ask for a session.',
  },
  cluster_unknown: {
    status: 401,
    retryable: false,
    cause: 'The server knows no cluster with this key.',
    remedy:
      'If the server was restored from a backup, finish the restore there. Else join the cluster again: start the agent with a new join token and an empty state folder. What is applied stays applied meanwhile, and is healed.',
  },
  cluster_removed: {
    status: 401,
    retryable: false,
    cause: 'The cluster was removed from the server, which says so with its signature: this agent has stopped enforcing.',
    remedy: 'To join the cluster again, start the agent with a new join token. What is applied stays as it is until then.',
  },
  revoked: {
    status: 403,
    retryable: false,
    cause: 'This agent was revoked on the server.',
    remedy: 'Set spec.revoked of the cluster to false, or delete it on the server and join again. What is applied stays applied meanwhile.',
  },
  superseded: {
    status: 403,
    retryable: false,
    cause: 'A newer agent took over this cluster with the same key.',
    remedy:
      'Stop this agent. If it is the right one: stop the other, move agent.sqlite out of this one’s data folder (its key stays) and start it with a join token; it then takes the next incarnation.',
  },
  protocol_unsupported: {
    status: 426,
    retryable: false,
    cause: 'Agent and server speak protocol versions that do not meet.',
    remedy: 'Upgrade the older side. The agent goes on enforcing what it holds.',
  },
  must_refetch: {
    status: 409,
    retryable: true,
    cause: 'The cursor cannot be answered by a delta.',
    remedy: 'Nothing to do: the agent fetches everything into a new replica.',
  },
  transfer_gone: {
    status: 410,
    retryable: true,
    cause: 'The page whose part was asked for is no longer kept, or was withdrawn.',
    remedy: 'Nothing to do: the agent starts over from its cursor.',
  },
  changes_gone: {
    status: 410,
    retryable: false,
    cause: 'The changes after that number are no longer kept, or the server was restored from a backup.',
    remedy: 'List again what you follow, then go on after the number that `newest` names.',
  },
  restore_pending: {
    status: 503,
    retryable: true,
    cause: 'The server was restored from a backup that is older than what its agents hold, and waits for a person.',
    remedy: 'Read the plan with `skerry restore` and confirm it. Agents go on enforcing what they hold, and nothing is removed meanwhile.',
  },
  bad_page: {
    status: 502,
    retryable: true,
    cause: 'A page from the server failed its checks.',
    remedy: 'Nothing to do: it is refetched. If it stays, look for a proxy that rewrites answers.',
  },
  bad_cursor: {
    status: 400,
    retryable: false,
    cause: 'The cursor is not of the form dbId.term.dv.hash.',
    remedy: 'Report this with the agent’s version.',
  },
  server_unreachable: {
    status: 502,
    retryable: true,
    cause: 'The server could not be reached.',
    remedy: 'Check address, network and proxy; the agent goes on enforcing what it holds.',
  },

  git_unreachable: {
    status: 502,
    retryable: true,
    cause: 'The Git server could not be reached.',
    remedy: 'Check spec.git.url and the network of the server; it is tried again, and the last content stays in use.',
  },
  git_ref_not_found: {
    status: 404,
    retryable: true,
    cause: 'The repository has no such branch or tag.',
    remedy: 'Correct spec.git.ref, or push the branch.',
  },
  git_failed: {
    status: 502,
    retryable: true,
    cause: 'Git answered with an error.',
    remedy: 'Look at the Git server and the repository; it is tried again, and the last content stays in use.',
  },
  git_program_missing: {
    status: 422,
    retryable: true,
    cause: 'The git or the ssh program is not on the server.',
    remedy: 'Install git and OpenSSH’s client where the server runs; repositories over https need neither, unless they say client: cli.',
  },
  source_refused: {
    status: 422,
    retryable: false,
    cause: 'The folder holds something that is not read, or more than is read.',
    remedy: 'Change what is named and push again.',
  },
  source_unreachable: {
    status: 502,
    retryable: true,
    cause: 'A chart repository or a registry cannot be reached, or did not answer in time.',
    remedy: 'Check the URL of the repository and the network of the server; it is tried again, and the last content stays in use.',
  },
  source_address_refused: {
    status: 422,
    retryable: false,
    cause: 'The source is at a private, loopback or link-local address, which users of this server may not make it speak to.',
    remedy: 'If it is meant, whoever runs the server allows the address: `skerry server --source-addresses 10.0.0.0/8`.',
  },
  credential_missing: {
    status: 422,
    retryable: true,
    cause: 'The source needs a credential that is not there, or that cannot be one.',
    remedy: 'Put it into the Config that spec…auth.secretRef names: token, or username and password, or sshKey and knownHosts.',
  },
  credential_refused: {
    status: 422,
    retryable: true,
    cause: 'The source refuses the credential that it was shown, or shows a host key that is not a known one.',
    remedy: 'Write one that is valid there into the Config that spec…auth.secretRef names; the last content stays in use.',
  },
  commit_unverified: {
    status: 422,
    retryable: false,
    cause: 'The commit is not signed by a key that the repository names.',
    remedy: 'Sign it with one of the keys, or add the key to spec.git.verify.keys. The last verified commit stays in force.',
  },
  renderer_missing: {
    status: 422,
    retryable: true,
    cause: 'The program that renders this is not on the server.',
    remedy:
      'Install it and name it with `--helm`, `--helm3`, `--kustomize` or `--renderers` of `skerry server` (of `skerry render -f`, where that renders); `skerry doctor` shows what is there.',
  },
  sandbox_unavailable: {
    status: 422,
    retryable: true,
    cause: 'Code of others must not run on this server, because it cannot be kept apart from it here.',
    remedy: 'Allow user namespaces on the host of the server, so that bubblewrap works; `skerry doctor` shows what is missing.',
  },
  no_manifests: {
    status: 422,
    retryable: false,
    cause: 'The path holds no manifests at that commit.',
    remedy: 'Correct spec.source.path, or push the manifests. To remove a service, delete it: an empty folder removes nothing.',
  },
  render_failed: {
    status: 422,
    retryable: false,
    cause: 'The manifests have errors.',
    remedy: 'Mend the manifests at the places named and push again.',
  },
  worker_stopped: {
    status: 422,
    retryable: true,
    cause: 'The worker process that read this content was stopped.',
    remedy:
      'Make the named repository or service smaller or simpler and push again. The server retries it in a separate worker, less and less often; other services are not affected.',
  },
  webhook_signature: {
    status: 401,
    retryable: false,
    cause: 'The webhook is not signed with this repository’s secret.',
    remedy: 'Copy the secret from `skerry describe repository NAME --show-secret` into the forge.',
  },

  kube_unreachable: {
    status: 502,
    retryable: true,
    cause: 'The Kubernetes API server could not be reached.',
    remedy: 'Check that it runs; the agent tries again.',
  },
  kube_config: {
    status: 500,
    retryable: false,
    cause: 'No usable Kubernetes credentials were found.',
    remedy: 'Give --kubeconfig and --context, or run the agent inside the cluster with a ServiceAccount.',
  },
  kube_refused: {
    status: 502,
    retryable: true,
    cause: 'The Kubernetes API server refused the agent’s credentials or rights.',
    remedy: 'Check that the token or certificate is valid and bound to the rights that the detail names.',
  },
  kube_unsupported: {
    status: 502,
    retryable: true,
    cause: 'What answered is no Kubernetes API server that Skerry can work with.',
    remedy: 'Check the server address; Kubernetes 1.27 or newer is needed.',
  },
  disk_full: {
    status: 507,
    retryable: true,
    cause: 'The data folder has no space left.',
    remedy: 'Free some space; it goes on by itself then, and what is applied in clusters stays applied.',
  },
  store_unreachable: {
    status: 503,
    retryable: true,
    cause: 'The database of the fleet store cannot be reached.',
    remedy:
      'Check that PostgreSQL runs and that this server may connect to it; it goes on by itself then. Agents go on enforcing what they hold.',
  },
  store_in_use: {
    status: 503,
    retryable: false,
    cause: 'Another server uses the database of the fleet store.',
    remedy: 'Stop the one that is named, or give this one a database of its own.',
  },
  store_newer: {
    status: 500,
    retryable: false,
    cause: 'The data folder was written by a newer version.',
    remedy: 'Start that version or a newer one; downgrades are not possible.',
  },
  store_damaged: {
    status: 500,
    retryable: false,
    cause: 'The fleet store is damaged.',
    remedy:
      'Stop the server, keep a copy of the data folder, and restore the newest backup (`skerry backup restore`); `skerry doctor` tells what is damaged.',
  },
  target_exists: {
    status: 409,
    retryable: false,
    cause: 'There is something already where it would be written.',
    remedy: 'Choose another folder, or move that one away; nothing was changed.',
  },
  backup_unusable: {
    status: 422,
    retryable: false,
    cause: 'The folder is no backup that this version can use, or it is not whole.',
    remedy: 'Use another backup; `skerry backup verify FOLDER` names everything that is wrong with this one.',
  },
  bad_options: {
    status: 400,
    retryable: false,
    cause: 'Options are missing or wrong.',
    remedy: '--help tells what each option takes.',
  },
  data_unusable: {
    status: 500,
    retryable: false,
    cause: 'The data folder cannot be made or written to.',
    remedy: 'Give this user write access to it, or choose another --data folder.',
  },
  data_locked: {
    status: 500,
    retryable: false,
    cause: 'Another process uses the data folder.',
    remedy: 'Stop it, or choose another --data folder.',
  },
})

export type ErrorCode = keyof typeof ERRORS

export const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(ERRORS, code)

export interface AppErrorData {
  /** What was being done, in a few words: "pull", "apply resources". */
  doing?: string
  /** The particular case: names, places, limits. Never a secret, never an echo of a whole input. */
  detail?: string
  /** What to do next in this particular case; else the table's. */
  remedy?: string
  /** Paths and messages of several problems found at once. */
  problems?: readonly Problem[]
  retryAfterMs?: number
  /** Further members of the problem body. */
  extra?: Record<string, unknown>
}

/** One thing that is wrong in an input: where, and what was expected. */
export const problemSchema = z.object({
  path: z.string(),
  message: z.string(),
  /** The line of the file that it is about, as its author wrote it; never of what a template made, which may hold secrets. */
  excerpt: z.string().max(400).optional(),
})
export type Problem = z.infer<typeof problemSchema>

/** An expected failure at an edge. Wrapped once, at the adapter, with what was being done. */
export class AppError extends Error {
  readonly code: ErrorCode
  readonly data: AppErrorData
  constructor(code: ErrorCode, data: AppErrorData = {}, options?: { cause?: unknown }) {
    super([data.doing, data.detail ?? ERRORS[code].cause].filter(Boolean).join(': '), options)
    this.name = 'AppError'
    this.code = code
    this.data = data
  }
  get retryAfterMs(): number | undefined {
    return this.data.retryAfterMs
  }
  get remedy(): string {
    return this.data.remedy ?? ERRORS[this.code].remedy
  }
}

/** Body of every answer that is not a success (RFC 9457), media type application/problem+json. Absent members: not known to the sender. */
export const problemBodySchema = z.looseObject({
  type: z.string(),
  title: z.string(),
  status: z.number().int(),
  code: z.string(),
  detail: z.string().optional(),
  remedy: z.string().optional(),
  problems: z.array(problemSchema).optional(),
  retryAfterMs: z.number().int().nonnegative().optional(),
})
export type ProblemBody = z.infer<typeof problemBodySchema>

export function problemBody(error: AppError): ProblemBody {
  const { status, cause } = ERRORS[error.code]
  return {
    type: `https://skerry.dev/errors/${error.code}`,
    title: cause,
    status,
    code: error.code,
    ...(error.data.detail === undefined ? {} : { detail: error.data.detail }),
    remedy: error.remedy,
    ...(error.data.problems === undefined ? {} : { problems: [...error.data.problems] }),
    ...(error.data.retryAfterMs === undefined ? {} : { retryAfterMs: error.data.retryAfterMs }),
    ...error.data.extra,
  }
}

/** The AppError that a problem body of another process stands for; an unknown code falls back by status. */
export function errorFromProblem(status: number, body: unknown, doing: string): AppError {
  const parsed = problemBodySchema.safeParse(body)
  const fallback: ErrorCode =
    status === 401
      ? 'unauthorized'
      : status === 404
        ? 'not_found'
        : status === 429
          ? 'too_many_requests'
          : status >= 500
            ? 'unavailable'
            : 'bad_request'
  if (!parsed.success) return new AppError(fallback, { doing, detail: `HTTP ${status}` })
  const { code, detail, remedy, problems, retryAfterMs, title } = parsed.data
  const {
    type: _,
    title: __,
    status: ___,
    remedy: ____,
    code: _____,
    detail: ______,
    problems: _______,
    retryAfterMs: ________,
    ...extra
  } = parsed.data
  return new AppError(isErrorCode(code) ? code : fallback, {
    doing,
    detail: detail ?? title,
    ...(remedy === undefined ? {} : { remedy }),
    ...(problems === undefined ? {} : { problems }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    extra,
  })
}
