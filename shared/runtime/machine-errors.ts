// The part of error-table.ts about the machine and the cluster of a program: Kubernetes, disk, fleet store, data
// folder, options.
interface ErrorEntry {
  status: number
  retryable: boolean
  /** The problem, in words that need no knowledge of the code. */
  cause: string
  remedy: string
}

/** Keeps the codes as literal types. */
export const define = <const T extends Record<string, ErrorEntry>>(table: T) => table

export const MACHINE_ERRORS = define({
  kube_unreachable: {
    status: 502,
    retryable: true,
    cause: 'The Kubernetes API server could not be reached.',
    remedy: 'Check that the API server runs; the agent retries.',
  },
  kube_config: {
    status: 500,
    retryable: false,
    cause: 'No usable Kubernetes credentials were found.',
    remedy: 'Set --kubeconfig and --context, or run the agent inside the cluster with a ServiceAccount.',
  },
  kube_refused: {
    status: 502,
    retryable: true,
    cause: 'The Kubernetes API server refused the agent’s credentials or rights.',
    remedy: 'Check that the token or certificate is valid and has the rights that the detail names.',
  },
  kube_unsupported: {
    status: 502,
    retryable: true,
    cause: 'The response is not from a supported Kubernetes API server.',
    remedy: 'Check the server address. Skerry needs Kubernetes 1.27 or newer.',
  },
  disk_full: {
    status: 507,
    retryable: true,
    cause: 'The disk of the data folder is full.',
    remedy: 'Free some space; the process then continues without a restart. Applied objects stay.',
  },
  store_unreachable: {
    status: 503,
    retryable: true,
    cause: 'The database of the fleet store cannot be reached.',
    remedy: 'Check that PostgreSQL runs and accepts this server; the server then continues without a restart. Agents keep enforcing.',
  },
  store_in_use: {
    status: 503,
    retryable: false,
    cause: 'Another server uses the database of the fleet store.',
    remedy: 'Stop the server that the message names, or use another database for this server.',
  },
  store_newer: {
    status: 500,
    retryable: false,
    cause: 'A newer version of Skerry wrote the data folder.',
    remedy: 'Start that version or a newer one; a downgrade is not possible.',
  },
  store_damaged: {
    status: 500,
    retryable: false,
    cause: 'The fleet store is damaged.',
    remedy:
      'Stop the server, keep a copy of the data folder, and restore the newest backup with `skerry backup restore`. `skerry doctor` lists the damage.',
  },
  native_library: {
    status: 500,
    retryable: false,
    cause: 'The native library of the program cannot be loaded.',
    remedy:
      'Install the program again. Where the host forbids code in memory, mount the data folder without `noexec`. The data was not touched.',
  },
  target_exists: {
    status: 409,
    retryable: false,
    cause: 'The target already exists.',
    remedy: 'Choose another folder, or move the existing one; nothing was changed.',
  },
  backup_unusable: {
    status: 422,
    retryable: false,
    cause: 'The folder is not a complete backup that this version can read.',
    remedy: 'Use another backup. `skerry backup verify FOLDER` lists the problems of this one.',
  },
  bad_options: {
    status: 400,
    retryable: false,
    cause: 'Options are missing or invalid.',
    remedy: 'Run the command with --help to list its options.',
  },
  data_unusable: {
    status: 500,
    retryable: false,
    cause: 'The data folder cannot be created or written to.',
    remedy: 'Give this user write access to the folder, or choose another --data folder.',
  },
  data_locked: {
    status: 500,
    retryable: false,
    cause: 'Another process uses the data folder.',
    remedy: 'Stop the other process, or choose another --data folder.',
  },
})
