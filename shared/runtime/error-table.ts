// Every error code that a person or a peer can meet, with its cause and remedy in one place.
import { define, MACHINE_ERRORS } from './machine-errors.ts'

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
    cause: 'The request body is not application/json.',
    remedy: 'Send JSON with the header Content-Type: application/json.',
  },
  too_large: {
    status: 413,
    retryable: false,
    cause: 'The request body exceeds the limit of this route.',
    remedy: 'Send a smaller body; the detail names the limit.',
  },
  bad_query: {
    status: 400,
    retryable: false,
    cause: 'The query is not valid SQL of fleet queries, or uses an unknown view or column.',
    remedy: 'Correct the query; `skerry query --views` lists the views and their columns.',
  },
  query_limit: {
    status: 400,
    retryable: false,
    cause: 'The query exceeded its limit of time or memory and was ended.',
    remedy: 'Narrow the query with WHERE, or aggregate fewer rows.',
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
    remedy: 'Read the detail. An admin of the server controls in the --oidc-config file who may sign in.',
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
    remedy: 'Repeat the request after the time in Retry-After.',
  },
  provider_unavailable: {
    status: 503,
    retryable: true,
    cause: 'The identity provider did not answer, or its answer is not valid.',
    remedy: 'Check the address and the certificate of the provider; the server retries.',
  },
  cross_site: {
    status: 403,
    retryable: false,
    cause: 'A request with a session cookie comes from another site.',
    remedy: 'Send the request from a page of this server, or with an API token.',
  },
  not_found: { status: 404, retryable: false, cause: 'Not found.', remedy: 'List existing names with `skerry get`.' },
  repository_missing: {
    status: 404,
    retryable: false,
    cause: 'The Service names a Repository that does not exist in its project.',
    remedy: 'Apply the Repository, or correct `spec.source.repository`.',
  },
  method_not_allowed: {
    status: 405,
    retryable: false,
    cause: 'The path does not support this method.',
    remedy: 'Use a method that the Allow header lists.',
  },
  conflict: {
    status: 409,
    retryable: false,
    cause: 'The resource changed since it was read.',
    remedy: 'Read the current version and repeat the change.',
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
    cause: 'Another resource still refers to this resource.',
    remedy: 'Change or delete the resources that the message names, then retry.',
  },
  internal: {
    status: 500,
    retryable: true,
    cause: 'Internal server error.',
    remedy: 'Retry. If the error persists, read the server log at the time of the response.',
  },
  unavailable: {
    status: 503,
    retryable: true,
    cause: 'The server is starting, stopping or overloaded.',
    remedy: 'Retry later; agents and the CLI retry automatically.',
  },
  too_many_requests: {
    status: 429,
    retryable: true,
    cause: 'Too many requests.',
    remedy: 'Retry after the time in Retry-After; agents do so automatically.',
  },

  join_token_unknown: {
    status: 401,
    retryable: false,
    cause: 'The join token is unknown to the server.',
    remedy: 'Create a join token with `skerry join-token create` and start the agent with it.',
  },
  join_token_expired: {
    status: 401,
    retryable: false,
    cause: 'The join token has expired.',
    remedy: 'Create a join token with `skerry join-token create` and start the agent with it.',
  },
  join_token_used_up: {
    status: 401,
    retryable: false,
    cause: 'The join token has no uses left.',
    remedy: 'Create a join token with `skerry join-token create --uses N`.',
  },
  join_proof_invalid: {
    status: 401,
    retryable: false,
    cause: 'The signature of the join request does not match its key.',
    remedy: 'Start the agent with an empty data folder, so that it creates a new key.',
  },
  join_name_taken: {
    status: 409,
    retryable: false,
    cause: 'A cluster with this name has already joined with another key.',
    remedy: 'Choose another --cluster name, or delete the old cluster with `skerry delete cluster NAME`.',
  },
  server_key_mismatch: {
    status: 502,
    retryable: false,
    cause: 'The key of the server does not match the fingerprint in the join token, or a proxy changed the response.',
    remedy: 'Check the server address. If it is correct, another host answers in place of the server.',
  },
  link_insecure: {
    status: 400,
    retryable: false,
    cause:
      'The server address is http:// on another host. Anyone on the network path can read sessions and manifests, and can answer in place of the server.',
    remedy:
      'Use the https:// address of the server. If the network protects the link by other means, start the agent with --insecure-http. The agent keeps enforcing.',
  },
  session_required: {
    status: 401,
    retryable: true,
    cause: 'The request carries no valid session.',
    remedy: 'Sign the nonce in the response and request a session.',
  },
  cluster_unknown: {
    status: 401,
    retryable: false,
    cause: 'The server knows no cluster with this key.',
    remedy:
      'If the server was restored from a backup, finish the restore there. Otherwise start the agent with a new join token and an empty data folder. The agent keeps enforcing.',
  },
  cluster_removed: {
    status: 401,
    retryable: false,
    cause: 'The cluster was removed from the server. The agent verified the signed removal and stopped enforcing.',
    remedy: 'To join the cluster again, start the agent with a new join token. Applied objects stay unchanged until then.',
  },
  revoked: {
    status: 403,
    retryable: false,
    cause: 'This agent was revoked on the server.',
    remedy: 'Set spec.revoked of the cluster to false, or delete the cluster on the server and join again. Applied objects stay.',
  },
  superseded: {
    status: 403,
    retryable: false,
    cause: 'A newer agent took over this cluster with the same key.',
    remedy:
      'Stop this agent. If this is the right agent, stop the other one, move agent.sqlite out of the data folder of this agent (keep its key), and start it with a join token.',
  },
  protocol_unsupported: {
    status: 426,
    retryable: false,
    cause: 'Agent and server have no protocol version in common.',
    remedy: 'Upgrade the older of the two. The agent keeps enforcing.',
  },
  must_refetch: {
    status: 409,
    retryable: true,
    cause: 'The server has no delta that starts at this cursor.',
    remedy: 'No action needed: the agent fetches a new replica.',
  },
  transfer_gone: {
    status: 410,
    retryable: true,
    cause: 'The page of the requested part is no longer available.',
    remedy: 'No action needed: the agent starts again from its cursor.',
  },
  changes_gone: {
    status: 410,
    retryable: false,
    cause: 'The changes after that number are no longer kept, or the server was restored from a backup.',
    remedy: 'List the resources again, then continue after the number in `newest`.',
  },
  restore_pending: {
    status: 503,
    retryable: true,
    cause: 'The server was restored from a backup older than the state of its agents, and waits for a confirmation.',
    remedy: 'Review the plan with `skerry restore` and confirm it. Agents keep enforcing and remove nothing until then.',
  },
  cluster_offline: {
    status: 503,
    retryable: true,
    cause: 'The agent of the cluster is not connected.',
    remedy: 'Ask again when the cluster is online; `skerry get clusters` shows when it was last seen.',
  },
  ask_unsupported: {
    status: 409,
    retryable: false,
    cause: 'The agent of the cluster does not take questions.',
    remedy:
      'Start the agent with --asking read or restart. An old agent needs an upgrade: `skerry describe cluster NAME` shows its version.',
  },
  ask_refused: {
    status: 409,
    retryable: false,
    cause: 'The site did not answer the question.',
    remedy: 'If the site refuses the question, change its local policy or the RBAC of the agent; otherwise correct what the detail names.',
  },
  ask_gone: {
    status: 410,
    retryable: false,
    cause: 'The caller no longer waits for this answer.',
    remedy: 'No action needed: the agent ends the answer.',
  },
  ask_unanswered: {
    status: 504,
    retryable: true,
    cause: 'The agent of the cluster did not answer in time.',
    remedy: 'Ask again. If the error persists, read the log of the agent.',
  },
  bad_page: {
    status: 502,
    retryable: true,
    cause: 'A page from the server failed verification.',
    remedy: 'The agent fetches the page again. If the error persists, look for a proxy that rewrites responses.',
  },
  bad_cursor: {
    status: 400,
    retryable: false,
    cause: 'The cursor does not have the form dbId.term.dv.hash.',
    remedy: 'Report this error with the version of the agent.',
  },
  server_unreachable: {
    status: 502,
    retryable: true,
    cause: 'The server could not be reached.',
    remedy: 'Check the address, the network and the proxy. The agent keeps enforcing.',
  },

  git_unreachable: {
    status: 502,
    retryable: true,
    cause: 'The Git server could not be reached.',
    remedy: 'Check spec.git.url and the network of the server. The server retries, and uses the last content until then.',
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
    cause: 'The Git server answered with an error.',
    remedy: 'Check the Git server and the repository. The server retries, and uses the last content until then.',
  },
  git_program_missing: {
    status: 422,
    retryable: true,
    cause: 'The program git or ssh is not installed on the server.',
    remedy: 'Install git and the OpenSSH client on the server. Repositories over https need neither, unless they set client: cli.',
  },
  project_refused: {
    status: 422,
    retryable: false,
    cause: 'The Project does not allow a field of the service or of its repository.',
    remedy: 'Change the field that the message names, or the Project: `skerry describe project NAME` shows its rules.',
  },
  source_refused: {
    status: 422,
    retryable: false,
    cause: 'The folder has content that is not allowed, or it exceeds a limit.',
    remedy: 'Change the content that the message names, and push again.',
  },
  source_unreachable: {
    status: 502,
    retryable: true,
    cause: 'A chart repository or a registry cannot be reached, or did not answer in time.',
    remedy: 'Check the URL of the repository and the network of the server. The server retries, and uses the last content until then.',
  },
  source_not_found: {
    status: 404,
    retryable: true,
    cause: 'The registry or repository answered, and has no such tag, chart or file.',
    remedy: 'Correct the name, tag or version in the spec, or publish it. The server retries, and uses the last content until then.',
  },
  source_address_refused: {
    status: 422,
    retryable: false,
    cause: 'The source has a private, loopback or link-local address, which this server does not allow.',
    remedy: 'To allow the address, start the server with `skerry server --source-addresses 10.0.0.0/8`.',
  },
  key_service_unavailable: {
    status: 503,
    retryable: true,
    cause: 'The key service that wraps the data keys of Configs cannot be asked.',
    remedy:
      'Check the address, the credential and the policy in the file of --key-service; secrets that were opened since the start stay usable.',
  },
  values_missing: {
    status: 422,
    retryable: false,
    cause: 'Values that come from outside of Skerry are not known yet: of a source of a Config, or of siteConfig.',
    remedy: 'See `skerry describe config NAME` or `skerry describe cluster NAME`. Clusters keep their revision until the values are known.',
  },
  credential_missing: {
    status: 422,
    retryable: true,
    cause: 'The source needs a credential, and the credential is missing or malformed.',
    remedy: 'Set the credential in the Config that spec…auth.secretRef names: token, or username and password, or sshKey and knownHosts.',
  },
  credential_refused: {
    status: 422,
    retryable: true,
    cause: 'The source refused the credential, or its host key is unknown.',
    remedy: 'Set a valid credential in the Config that spec…auth.secretRef names. The server uses the last content until then.',
  },
  commit_unverified: {
    status: 422,
    retryable: false,
    cause: 'The commit is not signed by a key that the repository names.',
    remedy: 'Sign the commit with one of the keys, or add the key to spec.git.verify.keys. The last verified commit stays in use.',
  },
  renderer_missing: {
    status: 422,
    retryable: true,
    cause: 'The render program is not installed on the server.',
    remedy:
      'Install the program and set `--helm`, `--helm3`, `--kustomize` or `--renderers` of `skerry server` (or of `skerry render -f`). `skerry doctor` lists the installed programs.',
  },
  sandbox_unavailable: {
    status: 422,
    retryable: true,
    cause: 'The sandbox for render programs does not work on this server.',
    remedy: 'Allow user namespaces on the host of the server for bubblewrap. `skerry doctor` shows what is missing.',
  },
  no_manifests: {
    status: 422,
    retryable: false,
    cause: 'The path has no manifests at this commit.',
    remedy: 'Correct spec.source.path, or push the manifests. To remove a service, delete the Service; an empty folder removes nothing.',
  },
  render_failed: {
    status: 422,
    retryable: false,
    cause: 'The manifests have errors.',
    remedy: 'Fix the manifests at the listed places and push again.',
  },
  worker_stopped: {
    status: 422,
    retryable: true,
    cause: 'The worker process that read this content was stopped by a limit or a crash.',
    remedy:
      'Make the named repository or service smaller or simpler and push again. The server retries in a separate worker at growing intervals. Other services are not affected.',
  },
  webhook_signature: {
    status: 401,
    retryable: false,
    cause: 'The webhook is not signed with the secret of this repository.',
    remedy: 'Make a secret with `skerry webhook-secret create NAME` and copy it into the forge.',
  },

  ...MACHINE_ERRORS,
})
