// The systemd unit of an agent on a node, and the file with its options. Pure.

export const UNIT = 'skerry-agent.service'
export const KUBECONFIG_PATH_UNIT = 'skerry-agent-kubeconfig.path'
export const RESTART_UNIT = 'skerry-agent-restart.service'

export interface NodeSite {
  server: string
  cluster: string
  /** Credentials of the node's Kubernetes; systemd passes a copy to the agent, which cannot read the file. */
  kubeconfig: string
  hasToken: boolean
  hasCa: boolean
  insecureHttp: boolean
  metered: boolean
  /** Folder with the options, below the root. */
  configDir: string
  binary: string
}

/**
 * DynamicUser: a user that exists while the unit runs, a strict file system and no privileges. The folder of `StateDirectory` is all that is writable.
 * MemoryDenyWriteExecute would stop the JIT of the runtime.
 */
export function unitText({ kubeconfig, hasToken, configDir, binary }: NodeSite): string {
  return `[Unit]
Description=Skerry agent: keeps this Kubernetes cluster equal to its desired state
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
ExecStart=${binary} run --data \${STATE_DIRECTORY} --kubeconfig \${CREDENTIALS_DIRECTORY}/kubeconfig
EnvironmentFile=${configDir}/agent.env
LoadCredential=kubeconfig:${kubeconfig}
${hasToken ? `LoadCredential=join-token:${configDir}/join-token\n` : ''}DynamicUser=yes
StateDirectory=skerry-agent
StateDirectoryMode=0700
UMask=0077
Restart=always
RestartSec=5
TimeoutStopSec=30
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
ProtectProc=invisible
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
RemoveIPC=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
`
}

/** The distribution writes new credentials into the file from time to time; systemd reads it at a start only. */
export const pathUnitText = ({ kubeconfig }: NodeSite): string => `[Unit]
Description=Restart the Skerry agent when the credentials of the node change

[Path]
PathChanged=${kubeconfig}
Unit=${RESTART_UNIT}

[Install]
WantedBy=multi-user.target
`

export const restartUnitText = (): string => `[Unit]
Description=Restart the Skerry agent

[Service]
Type=oneshot
ExecStart=systemctl try-restart ${UNIT}
`

export function environmentText({ server, cluster, hasToken, hasCa, insecureHttp, metered, configDir }: NodeSite): string {
  const values = {
    SKERRY_SERVER: server,
    SKERRY_CLUSTER: cluster,
    ...(hasToken ? { SKERRY_JOIN_TOKEN_FILE: '/run/credentials/skerry-agent.service/join-token' } : {}),
    ...(hasCa ? { SKERRY_SERVER_CA: `${configDir}/server-ca.crt` } : {}),
    ...(insecureHttp ? { SKERRY_INSECURE_HTTP: 'true' } : {}),
    ...(metered ? { SKERRY_METERED: 'true' } : {}),
  }
  return `# Options of skerry-agent run; add others of \`skerry-agent run --help\` by their environment variables.\n${Object.entries(values)
    .map(([key, value]) => `${key}="${value.replace(/["\\$`]/g, '\\$&')}"\n`)
    .join('')}`
}
