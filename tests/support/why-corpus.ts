// Broken deployments with known causes: objects with the statuses that kubelets, schedulers and controllers write, and
// answers of API servers. Texts are those of Kubernetes 1.30 to 1.36.
import {
  claim,
  container,
  creating,
  ended,
  job,
  LABELS,
  loop,
  OTHERS_MISMATCH,
  pull,
  refuse,
  refusedPods,
  tainted,
  UNBOUND,
  unhealthy,
  unschedulable,
  type WhyCase,
  waiting,
  web,
} from './why-corpus-objects.ts'

export const WHY_CASES: readonly WhyCase[] = [
  {
    name: 'a tag that does not exist',
    cause: 'ImageNotFound',
    live: pull(
      'rpc error: code = NotFound desc = failed to pull and unpack image "registry.example/web:9": failed to resolve reference: registry.example/web:9: not found',
    ),
  },
  {
    name: 'a private image without credentials',
    cause: 'ImagePullDenied',
    live: pull('failed to authorize: failed to fetch anonymous token: unexpected status from GET request: 401 Unauthorized'),
  },
  {
    name: 'a registry whose name does not resolve',
    cause: 'RegistryUnreachable',
    live: pull('failed to do request: Head "https://registry.example/v2/web/manifests/9": dial tcp: lookup registry.example: no such host'),
  },
  {
    name: 'a registry with a certificate of nobody',
    cause: 'RegistryUnreachable',
    live: pull(
      'failed to do request: Head "https://registry.example/v2/": tls: failed to verify certificate: x509: certificate signed by unknown authority',
    ),
  },
  {
    name: 'a registry that counts pulls',
    cause: 'RegistryRateLimit',
    live: pull('unexpected status code 429 Too Many Requests: toomanyrequests: You have reached your pull rate limit'),
  },
  {
    name: 'an image with a space in its name',
    cause: 'ImageNameInvalid',
    live: web(
      container(
        waiting(
          'InvalidImageName',
          'Failed to apply default image tag "web: 9": couldn\'t parse image name "web: 9": invalid reference format',
        ),
      ),
    ),
  },
  {
    name: 'an image that is never pulled',
    cause: 'ImageNotPresent',
    live: web(container(waiting('ErrImageNeverPull', 'Container image "web:9" is not present with pull policy of Never'))),
  },
  { name: 'a program that ends with 1', cause: 'CrashLoop', live: web(loop(1)) },
  { name: 'a program that was restarted a moment ago', cause: 'CrashLoop', live: web(container({ running: {} }, ended(2))) },
  { name: 'a memory limit', cause: 'OutOfMemory', live: web(loop(137, 'OOMKilled')) },
  {
    name: 'a command that is not in the image',
    cause: 'CommandNotFound',
    live: web(
      container(
        waiting(
          'RunContainerError',
          'failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: exec: "srv": executable file not found in $PATH: unknown',
        ),
        ended(128, 'StartError'),
      ),
    ),
  },
  {
    name: 'a readiness probe with a wrong path',
    cause: 'ProbeFailed',
    live: web(container({ running: {} }), { podEvents: unhealthy('Readiness probe failed: HTTP probe failed with statuscode: 404') }),
  },
  {
    name: 'a liveness probe that kills',
    cause: 'ProbeFailed',
    live: web(loop(137), { podEvents: unhealthy('Liveness probe failed: Get "http://10.0.0.9:8080/healthz": context deadline exceeded') }),
  },
  {
    name: 'a startup probe',
    cause: 'ProbeFailed',
    live: web(container({ running: {} }, ended(143)), {
      podEvents: unhealthy('Startup probe failed: dial tcp 10.0.0.9:8080: connect: connection refused'),
    }),
  },
  { name: 'a program that never gets ready', cause: 'NotReady', live: web(container({ running: {} })) },
  {
    name: 'a quota',
    cause: 'QuotaExceeded',
    live: [
      refusedPods(
        'pods "web-7d9-x2b" is forbidden: exceeded quota: compute, requested: requests.cpu=2, used: requests.cpu=3, limited: requests.cpu=4',
      ),
    ],
  },
  {
    name: 'a quota for which requests are missing',
    cause: 'QuotaExceeded',
    live: [refusedPods('pods "web-7d9-x2b" is forbidden: failed quota: compute: must specify limits.cpu for: app; requests.cpu for: app')],
  },
  {
    name: 'a pod security standard',
    cause: 'PodSecurity',
    live: [
      refusedPods(
        'pods "web-7d9-x2b" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "app" must set securityContext.allowPrivilegeEscalation=false)',
      ),
    ],
  },
  {
    name: 'a service account that is not there',
    cause: 'ServiceAccountMissing',
    live: [refusedPods('pods "web-7d9-" is forbidden: error looking up service account shop/web: serviceaccount "web" not found')],
  },
  {
    name: 'a limit range',
    cause: 'LimitRangeViolated',
    live: [refusedPods('pods "web-7d9-x2b" is forbidden: maximum memory usage per Container is 1Gi, but limit is 4Gi')],
  },
  {
    name: 'a priority class that is not there',
    cause: 'PriorityClassMissing',
    live: [refusedPods('pods "web-7d9-" is forbidden: no PriorityClass with name critical was found')],
  },
  {
    name: 'a policy that refuses the Pods',
    cause: 'AdmissionDenied',
    live: [refusedPods('admission webhook "policy.example.com" denied the request: images need a digest')],
  },
  {
    name: 'a policy that refuses the Deployment',
    cause: 'AdmissionDenied',
    refused: refuse(
      'Deployment shop/web',
      'Forbidden',
      "deployments.apps \"web\" is forbidden: ValidatingAdmissionPolicy 'replicas' with binding 'replicas' denied request: too many replicas; change the RBAC rule, quota or admission policy that forbids it; retrying",
    ),
  },
  {
    name: 'a webhook without a backend',
    cause: 'WebhookUnavailable',
    refused: refuse(
      'Deployment shop/web',
      'WebhookUnavailable',
      'failed calling webhook "validate.example.com": failed to call webhook: Post "https://validate.policy.svc:443/v?timeout=10s": dial tcp 10.96.0.7:443: connect: connection refused',
    ),
  },
  {
    name: 'a storage class that is not there, and a Pod that waits',
    cause: 'StorageClassMissing',
    live: [
      claim([{ reason: 'ProvisioningFailed', message: 'storageclass.storage.k8s.io "fast" not found' }]),
      ...web(unschedulable(UNBOUND)),
    ],
  },
  {
    name: 'a claim without a storage class',
    cause: 'StorageClassMissing',
    live: [
      claim([
        { type: 'Normal', reason: 'FailedBinding', message: 'no persistent volumes available for this claim and no storage class is set' },
      ]),
      ...web(unschedulable(UNBOUND)),
    ],
  },
  {
    name: 'a provisioner that fails',
    cause: 'VolumeNotProvisioned',
    live: [
      claim([
        {
          reason: 'ProvisioningFailed',
          message: 'failed to provision volume with StorageClass "fast": rpc error: code = ResourceExhausted desc = pool is full',
        },
      ]),
      ...web(unschedulable(UNBOUND)),
    ],
  },
  {
    name: 'a provisioner that is not installed',
    cause: 'VolumeNotProvisioned',
    live: [
      claim([
        {
          type: 'Normal',
          reason: 'ExternalProvisioning',
          message:
            "Waiting for a volume to be created either by the external provisioner 'disks.example.com' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.",
        },
      ]),
      ...web(unschedulable(UNBOUND)),
    ],
  },
  {
    name: 'a claim that is not there',
    cause: 'VolumeClaimMissing',
    live: web(unschedulable('0/3 nodes are available: persistentvolumeclaim "data" not found. preemption: 0/3 nodes are available.')),
  },
  {
    name: 'a volume on another node',
    cause: 'VolumeInUse',
    live: web(creating, {
      podEvents: [
        { reason: 'FailedAttachVolume', message: 'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) web-6c8-abc' },
      ],
    }),
  },
  {
    name: 'a volume in another zone',
    cause: 'VolumeZone',
    live: web(unschedulable('0/3 nodes are available: 3 node(s) had volume node affinity conflict.')),
  },
  {
    name: 'a volume on a node that the Pod may not use',
    cause: 'VolumeZone',
    live: web(
      unschedulable("0/3 nodes are available: 3 node(s) didn't match PersistentVolume's node affinity. no new claims to deallocate."),
    ),
  },
  {
    name: 'rights of the agent',
    cause: 'RbacForbidden',
    refused: refuse(
      'Role shop/web',
      'Forbidden',
      'roles.rbac.authorization.k8s.io "web" is forbidden: User "system:serviceaccount:skerry:agent" cannot patch resource "roles" in API group "rbac.authorization.k8s.io" in the namespace "shop"; change the RBAC rule',
    ),
  },
  {
    name: 'a CRD that is not installed',
    cause: 'CrdMissing',
    refused: refuse('Certificate shop/tls', 'UnknownKind', 'the API server serves no Certificate of cert-manager.io/v1'),
  },
  {
    name: 'a selector that changed',
    cause: 'Immutable',
    refused: [
      { name: 'Deployment shop/web', reason: 'Immutable', message: 'spec.selector: Invalid value: field is immutable', health: 'Healthy' },
    ],
  },
  {
    name: 'a Pod that was evicted',
    cause: 'NodePressure',
    live: web({
      phase: 'Failed',
      reason: 'Evicted',
      message: 'The node was low on resource: ephemeral-storage. Threshold quantity: 10%, available: 3%.',
    }),
  },
  {
    name: 'nodes with a full disk',
    cause: 'NodePressure',
    live: web(unschedulable('0/3 nodes are available: 3 node(s) had untolerated taint {node.kubernetes.io/disk-pressure: }.')),
  },
  {
    name: 'nodes that are gone',
    cause: 'NodeNotReady',
    live: web(unschedulable('0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }.')),
  },
  {
    name: 'a full disk on the one node that the Pod may use',
    cause: 'NodePressure',
    live: web(unschedulable(OTHERS_MISMATCH), { nodes: [tainted('node.kubernetes.io/disk-pressure', LABELS), tainted('dedicated')] }),
  },
  {
    name: 'a cordoned node',
    cause: 'NodeCordoned',
    live: web(
      unschedulable("0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector."),
      { nodes: [tainted('node.kubernetes.io/unschedulable', LABELS), tainted('dedicated')] },
    ),
  },
  {
    name: 'too little memory',
    cause: 'InsufficientResources',
    live: web(
      unschedulable(
        '0/3 nodes are available: 3 Insufficient memory. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.',
      ),
    ),
  },
  {
    name: 'a node label that nobody has',
    cause: 'NodeSelectorMismatch',
    live: web(unschedulable("0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.")),
  },
  {
    name: 'a node label that nobody has, and nodes with taints',
    cause: 'NodeSelectorMismatch',
    live: web(unschedulable(OTHERS_MISMATCH), { nodes: [tainted('dedicated'), tainted('node-role.kubernetes.io/control-plane')] }),
  },
  {
    name: 'a taint of the one node that the Pod may use',
    cause: 'TaintNotTolerated',
    live: web(unschedulable(OTHERS_MISMATCH), { nodes: [tainted('dedicated', LABELS), tainted('node.kubernetes.io/disk-pressure')] }),
  },
  {
    name: 'a taint',
    cause: 'TaintNotTolerated',
    live: web(unschedulable('0/3 nodes are available: 3 node(s) had untolerated taint {dedicated: gpu}.')),
  },
  {
    name: 'anti-affinity',
    cause: 'SpreadConstraint',
    live: web(unschedulable("0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules.")),
  },
  {
    name: 'affinity to Pods that are not there',
    cause: 'SpreadConstraint',
    live: web(
      unschedulable(
        "0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 2 node(s) didn't match pod affinity rules.",
      ),
    ),
  },
  {
    name: 'a host port',
    cause: 'HostPortConflict',
    live: web(unschedulable("0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.")),
  },
  {
    name: 'a ConfigMap that is not there',
    cause: 'ConfigMapMissing',
    live: web(container(waiting('CreateContainerConfigError', 'configmap "settings" not found'))),
  },
  {
    name: 'a Secret that is not there',
    cause: 'SecretMissing',
    live: web(container(waiting('CreateContainerConfigError', 'secret "db" not found'))),
  },
  {
    name: 'a Secret of a volume that is not there',
    cause: 'SecretMissing',
    live: web(creating, {
      podEvents: [{ reason: 'FailedMount', message: 'MountVolume.SetUp failed for volume "tls" : secret "tls" not found' }],
    }),
  },
  {
    name: 'a key that is not there',
    cause: 'KeyMissing',
    live: web(container(waiting('CreateContainerConfigError', "couldn't find key PORT in ConfigMap shop/settings"))),
  },
  {
    name: 'an init container',
    cause: 'InitContainerFailed',
    live: web({
      phase: 'Pending',
      initContainerStatuses: [{ name: 'migrate', state: waiting('CrashLoopBackOff'), lastState: ended(3), ready: false }],
      containerStatuses: [{ name: 'app', state: waiting('PodInitializing'), ready: false }],
    }),
  },
  {
    name: 'the network of a node',
    cause: 'PodNetwork',
    live: web(creating, {
      podEvents: [
        {
          reason: 'FailedCreatePodSandBox',
          message:
            'Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox: plugin type="calico" failed (add)',
        },
      ],
    }),
  },
  {
    name: 'a finalizer that nobody removes',
    cause: 'DeletionStuck',
    refused: [
      {
        name: 'Widget shop/w',
        reason: 'DeletionStuck',
        message: 'terminating for 20m; finalizers: example.com/cleanup',
        health: 'Progressing',
      },
    ],
  },
  {
    name: 'a namespace that is being deleted',
    cause: 'NamespaceTerminating',
    refused: refuse(
      'Deployment shop/web',
      'NamespaceTerminating',
      'deployments.apps "web" is forbidden: unable to create new content in namespace shop because it is being terminated',
    ),
  },
  {
    name: 'a namespace that is not there',
    cause: 'NamespaceMissing',
    refused: refuse(
      'Deployment shop/web',
      'NamespaceMissing',
      'namespaces "shop" not found; create the namespace or set sync.createNamespace; retrying',
    ),
  },
  {
    name: 'a Job whose runs fail',
    cause: 'JobFailed',
    live: [{ object: job('BackoffLimitExceeded', 'Job has reached the specified backoff limit') }],
  },
  {
    name: 'a Job that takes too long',
    cause: 'JobDeadline',
    live: [{ object: job('DeadlineExceeded', 'Job was active longer than specified deadline') }],
  },
  {
    name: 'another tool that changes the replicas',
    cause: 'FieldConflict',
    refused: [
      { name: 'Deployment shop/web', reason: 'Contested', message: 'changed by kubectl-scale after each correction', health: 'Healthy' },
    ],
  },
  {
    name: 'an object of another service',
    cause: 'OwnedByOther',
    refused: refuse(
      'ConfigMap shop/settings',
      'OwnedByOther',
      'already managed by service shop/base; rename the object, remove it there, or set sync.takeover',
    ),
  },
  {
    name: 'a node port that is taken',
    cause: 'AlreadyTaken',
    refused: refuse('Service shop/web', 'AlreadyTaken', 'spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated'),
  },
  {
    name: 'a field that does not exist',
    cause: 'InvalidManifest',
    refused: refuse('Deployment shop/web', 'Invalid', '.spec.template.spec.contaners: field not declared in schema'),
  },
  {
    name: 'a Secret that may not be written, and a Pod that waits for it',
    cause: 'RbacForbidden',
    refused: refuse(
      'Secret shop/db',
      'Forbidden',
      'secrets "db" is forbidden: User "agent" cannot create resource "secrets" in API group "" in the namespace "shop"',
    ),
    live: web(container(waiting('CreateContainerConfigError', 'secret "db" not found'))),
  },
  {
    name: 'manifests that do not render',
    cause: 'RenderFailed',
    service: { reason: 'RenderFailed', message: 'shop/a.yaml:3:1: bad indentation; the last good revision stays active' },
  },
  {
    name: 'a repository that cannot be read',
    cause: 'RepositoryUnreadable',
    service: { reason: 'RepositoryUnreadable', message: 'git_unreachable: connection refused' },
  },
  { name: 'targets that match nothing', cause: 'NoTargets', service: { reason: 'NoTargets', message: 'spec.targets matches no cluster' } },
  { name: 'a suspension', cause: 'Suspended', placement: { reason: 'Suspended', message: 'suspended by ana: freeze' } },
  {
    name: 'a revision that waits for a person',
    cause: 'ManualSync',
    placement: { reason: 'ManualSync', message: 'commit 4be19d0 waits for skerry sync' },
  },
]
