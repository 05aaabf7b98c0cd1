// The systemd unit of an agent on a node, and the file with its options. Pure.

export const UNIT = 'skerry-agent.service'
export const KUBECONFIG_PATH_UNIT = 'skerry-agent-kubeconfig.path'
export const RESTART_UNIT = 'skerry-agent-restart.service'

export interface NodeSite {
  server: string
  cluster: string
  /** Credentials of the node's Kubernetes; systemd passes a copy to the agent, which cannot read the file. */
  kubeconfig: string
  hasCa: boolean
  insecureHttp: boolean
  metered: boolean
  /** Folder with the options, below the root. */
  configDir: string
  binary: string
}

/**
 * DynamicUser: a user that exists while the unit runs, a strict file system and no privileges. The folder of
 * `StateDirectory` is all that is writable. MemoryDenyWriteExecute would stop the JIT of the runtime. The join token is
 * in an optional file of options, because systemd does not start a unit whose credential is missing, and people delete
 * the token after the join.
 */
export function unitText({ kubeconfig, configDir, binary }: NodeSite): string {
  return `[Unit]
Description=Skerry agent: keeps this Kubernetes cluster equal to its desired state
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
ExecStart=${binary} run --data \${STATE_DIRECTORY} --kubeconfig \${CREDENTIALS_DIRECTORY}/kubeconfig
EnvironmentFile=${configDir}/agent.env
EnvironmentFile=-${configDir}/join-token.env
EnvironmentFile=-${configDir}/local.env
LoadCredential=kubeconfig:${kubeconfig}
DynamicUser=yes
StateDirectory=skerry-agent
StateDirectoryMode=0700
UMask=0077
LimitCORE=0
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

export function environmentText({ server, cluster, hasCa, insecureHttp, metered, configDir }: NodeSite): string {
  const values = {
    SKERRY_SERVER: server,
    SKERRY_CLUSTER: cluster,
    ...(hasCa ? { SKERRY_SERVER_CA: `${configDir}/server-ca.crt` } : {}),
    ...(insecureHttp ? { SKERRY_INSECURE_HTTP: 'true' } : {}),
    ...(metered ? { SKERRY_METERED: 'true' } : {}),
  }
  const lines = Object.entries(values).map(([key, value]) => variable(key, value))
  return `# Written by skerry-agent install, which replaces it. Your own options belong in local.env.\n${lines.join('')}`
}

export const LOCAL_OPTIONS_TEXT = `# Options of this node, by the environment variables that \`skerry-agent run --help\` lists. They win over agent.env.
# skerry-agent install keeps this file. After a change: systemctl restart ${UNIT}
`

export const tokenText = (token: string): string => `# Used once. Delete this file after the join.\n${variable('SKERRY_JOIN_TOKEN', token)}`

const variable = (key: string, value: string): string => `${key}="${value.replace(/["\\$`]/g, '\\$&')}"\n`
