// Every error code that a person or a peer can meet, with its cause and remedy in one place.
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
    cause: 'The request does not match the schema of this route.',
    remedy: 'Compare it with the OpenAPI document under /api/v1/openapi.json.',
  },
  invalid_resource: {
    status: 422,
    retryable: false,
    cause: 'A resource has fields that are unknown, missing or of the wrong type.',
    remedy: 'Fix the fields listed and apply again; nothing was changed.',
  },
  unsupported_media: {
    status: 415,
    retryable: false,
    cause: 'The body is no application/json.',
    remedy: 'Send JSON with the header Content-Type: application/json.',
  },
  too_large: {
    status: 413,
    retryable: false,
    cause: 'The body is larger than this route takes.',
    remedy: 'Send less at once; the detail names the limit.',
  },
  unauthorized: {
    status: 401,
    retryable: false,
    cause: 'The request carries no credential, or one that is unknown or expired.',
    remedy: 'Set SKERRY_TOKEN or --token to a valid API token.',
  },
  forbidden: {
    status: 403,
    retryable: false,
    cause: 'The caller does not have the right that the request needs.',
    remedy: 'Ask an administrator for a role that has the right that the detail names.',
  },
  sign_in_refused: {
    status: 403,
    retryable: false,
    cause: 'The identity provider or the sign-in settings of the server refuse the sign-in.',
    remedy: 'Read the detail. An admin of the server changes who may sign in with --oidc-config.',
  },
  sign_in_expired: {
    status: 400,
    retryable: false,
    cause: 'The sign-in is unknown, was completed before, or took longer than 10 minutes.',
    remedy: 'Sign in again, and complete it in the same browser.',
  },
  sign_in_pending: {
    status: 409,
    retryable: true,
    cause: 'The person has not completed the sign-in yet.',
    remedy: 'Ask again after the time in Retry-After.',
  },
  provider_unavailable: {
    status: 503,
    retryable: true,
    cause: 'The identity provider does not answer as expected.',
    remedy: 'Check the address and the certificate of the provider; the server keeps trying.',
  },
  cross_site: {
    status: 403,
    retryable: false,
    cause: 'A request with a session cookie comes from another site.',
    remedy: 'Send it from a page of the server itself, or with an API token.',
  },
  not_found: { status: 404, retryable: false, cause: 'Not found.', remedy: 'List existing names with `skerry get`.' },
  method_not_allowed: {
    status: 405,
    retryable: false,
    cause: 'The path does not have this method.',
    remedy: 'Use one of the methods that the header Allow names.',
  },
  conflict: {
    status: 409,
    retryable: false,
    cause: 'The resource changed since it was read.',
    remedy: 'Read the resource again and repeat the change.',
  },
  idempotency_key_reused: {
    status: 422,
    retryable: false,
    cause: 'The Idempotency-Key was used for another request.',
    remedy: 'Use a new key for each request; repeat a key only with the same request.',
  },
  in_use: {
    status: 409,
    retryable: false,
    cause: 'Another resource still refers to it.',
    remedy: 'First change or delete the resources that the message names.',
  },
  internal: {
    status: 500,
    retryable: true,
    cause: 'Internal error of the server.',
    remedy: 'Retry; if it persists, read the server log at the time of the answer.',
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
    cause: 'The signature of the join request does not match its key.',
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
    cause: 'The server does not have the key whose fingerprint is in the join token, or its answer was changed on the way.',
    remedy: 'Check the server address; if it is right, something between agent and server impersonates the server.',
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
    cause: 'Agent and server have no protocol version in common.',
    remedy: 'Upgrade the older one. The agent keeps enforcing.',
  },
  must_refetch: {
    status: 409,
    retryable: true,
    cause: 'No delta can start at this cursor.',
    remedy: 'Nothing to do: the agent fetches everything into a new replica.',
  },
  transfer_gone: {
    status: 410,
    retryable: true,
    cause: 'The page of the requested part is no longer available.',
    remedy: 'Nothing to do: the agent starts over from its cursor.',
  },
  changes_gone: {
    status: 410,
    retryable: false,
    cause: 'The changes after that number are no longer kept, or the server was restored from a backup.',
    remedy: 'List again, then continue after the number in `newest`.',
  },
  restore_pending: {
    status: 503,
    retryable: true,
    cause: 'The server was restored from a backup that is older than the state of its agents. It waits for confirmation.',
    remedy: 'Read the plan with `skerry restore` and confirm it. Agents keep enforcing, and nothing is removed meanwhile.',
  },
  bad_page: {
    status: 502,
    retryable: true,
    cause: 'A page from the server failed its checks.',
    remedy: 'Nothing to do: the agent fetches it again. If it persists, look for a proxy that rewrites answers.',
  },
  bad_cursor: {
    status: 400,
    retryable: false,
    cause: 'The cursor does not have the form dbId.term.dv.hash.',
    remedy: 'Report this with the agent’s version.',
  },
  server_unreachable: {
    status: 502,
    retryable: true,
    cause: 'The server could not be reached.',
    remedy: 'Check address, network and proxy; the agent keeps enforcing.',
  },

  git_unreachable: {
    status: 502,
    retryable: true,
    cause: 'The Git server could not be reached.',
    remedy: 'Check spec.git.url and the network of the server. The server retries; the last content stays in use.',
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
    remedy: 'Check the Git server and the repository. The server retries; the last content stays in use.',
  },
  git_program_missing: {
    status: 422,
    retryable: true,
    cause: 'The program git or ssh is not installed on the server.',
    remedy: 'Install git and OpenSSH’s client where the server runs; repositories over https need neither, unless they say client: cli.',
  },
  project_refused: {
    status: 422,
    retryable: false,
    cause: 'The Project does not allow what the service or its repository says.',
    remedy: 'Change the field that the message names, or the Project: `skerry describe project NAME` shows its rules.',
  },
  source_refused: {
    status: 422,
    retryable: false,
    cause: 'The folder has content that is not allowed, or exceeds a limit.',
    remedy: 'Change the content that the message names and push again.',
  },
  source_unreachable: {
    status: 502,
    retryable: true,
    cause: 'A chart repository or a registry cannot be reached, or did not answer in time.',
    remedy: 'Check the URL of the repository and the network of the server. The server retries; the last content stays in use.',
  },
  source_address_refused: {
    status: 422,
    retryable: false,
    cause: 'The source has a private, loopback or link-local address, which this server does not allow.',
    remedy: 'If the address is intended, the operator allows it with `skerry server --source-addresses 10.0.0.0/8`.',
  },
  credential_missing: {
    status: 422,
    retryable: true,
    cause: 'The source needs a credential, and none is given or it is malformed.',
    remedy: 'Put it into the Config that spec…auth.secretRef names: token, or username and password, or sshKey and knownHosts.',
  },
  credential_refused: {
    status: 422,
    retryable: true,
    cause: 'The source refuses the credential, or has an unknown host key.',
    remedy: 'Put a valid credential into the Config that spec…auth.secretRef names. The last content stays in use.',
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
    cause: 'The render program is not installed on the server.',
    remedy:
      'Install it and name it with `--helm`, `--helm3`, `--kustomize` or `--renderers` of `skerry server` (of `skerry render -f`, where that renders); `skerry doctor` shows what is there.',
  },
  sandbox_unavailable: {
    status: 422,
    retryable: true,
    cause: 'The sandbox for render programs does not work on this server.',
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
    remedy: 'Fix the manifests at the places listed and push again.',
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
    cause: 'The answer is not that of a supported Kubernetes API server.',
    remedy: 'Check the server address; Kubernetes 1.27 or newer is needed.',
  },
  disk_full: {
    status: 507,
    retryable: true,
    cause: 'The data folder has no space left.',
    remedy: 'Free some space; the process then continues by itself. Clusters keep what is applied.',
  },
  store_unreachable: {
    status: 503,
    retryable: true,
    cause: 'The database of the fleet store cannot be reached.',
    remedy: 'Check that PostgreSQL runs and accepts this server; the server then continues by itself. Agents keep enforcing.',
  },
  store_in_use: {
    status: 503,
    retryable: false,
    cause: 'Another server uses the database of the fleet store.',
    remedy: 'Stop the server that the message names, or give this one another database.',
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
      'Stop the server, keep a copy of the data folder, and restore the newest backup (`skerry backup restore`); `skerry doctor` lists the damage.',
  },
  target_exists: {
    status: 409,
    retryable: false,
    cause: 'The target already exists.',
    remedy: 'Choose another folder, or move the existing one away; nothing was changed.',
  },
  backup_unusable: {
    status: 422,
    retryable: false,
    cause: 'The folder is not a complete backup that this version can read.',
    remedy: 'Use another backup; `skerry backup verify FOLDER` lists all problems of this one.',
  },
  bad_options: {
    status: 400,
    retryable: false,
    cause: 'Options are missing or wrong.',
    remedy: 'See --help.',
  },
  data_unusable: {
    status: 500,
    retryable: false,
    cause: 'The data folder cannot be created or written to.',
    remedy: 'Give this user write access to it, or choose another --data folder.',
  },
  data_locked: {
    status: 500,
    retryable: false,
    cause: 'Another process uses the data folder.',
    remedy: 'Stop it, or choose another --data folder.',
  },
})
