// Kinds of well-known operators whose statuses follow the conventions that the general evaluation reads: conditions
// such as Ready, Available, Failed, or a word in `status.phase` or `status.state`. Their controllers report for every
// object, so silence is no health (HE4): no grace time ends it. Each row names the operator whose API types say so.
import { availableProgressingDegraded, conditionsTogether, isTrue, statusTogether, unlessStopped, unlessTrue } from './health-conditions.ts'
import { failedBy, generalHealth, waitsFor } from './health-general.ts'
import { degraded, HEALTHY, oneLine, type Rule, text } from './health-object.ts'

/** A version without the subresource reports nothing in it. */
const reports: Rule = (reading) => (reading.hasStatus === false ? generalHealth(reading) : statusTogether(reading))

const TRIDENT_PROTECT =
  'AppMirrorRelationship AppMirrorUpdate AppVault AutoSupportBundle Backup BackupInplaceRestore BackupRestore ExecHooksRun KopiaVolumeBackup KopiaVolumeRestore PVCCopy ResourceBackup ResourceDelete ResourceRestore ResourceSummaryUpload ShutdownSnapshot Snapshot SnapshotInplaceRestore SnapshotRestore'

const REPORTING: ReadonlyArray<readonly [group: string, kinds: string]> = [
  // actions-runner-controller apis/actions.github.com, apis/actions.summerwind.net: phase, counters.
  ['actions.github.com', 'AutoscalingRunnerSet EphemeralRunner EphemeralRunnerSet'],
  ['actions.summerwind.dev', 'HorizontalRunnerAutoscaler Runner RunnerDeployment RunnerReplicaSet RunnerSet'],
  // open-cluster-management.io/api: conditions Applied, Available, PlacementSatisfied; phase Propagated, Failed;
  // multiclusterhub-operator: phase.
  ['addon.open-cluster-management.io', 'ManagedClusterAddOn'],
  ['apps.open-cluster-management.io', 'GitOpsCluster Subscription'],
  ['cluster.open-cluster-management.io', 'ManagedCluster Placement'],
  ['multicluster.openshift.io', 'MultiClusterEngine'],
  ['operator.open-cluster-management.io', 'ClusterManager Klusterlet MultiClusterHub'],
  ['work.open-cluster-management.io', 'ManifestWork ManifestWorkReplicaSet'],
  // cluster-api exp and addon-provider-helm, operator api/v1alpha2: condition Ready.
  ['addons.cluster.x-k8s.io', 'HelmChartProxy HelmReleaseProxy'],
  ['ipam.cluster.x-k8s.io', 'IPAddressClaim'],
  ['runtime.cluster.x-k8s.io', 'ExtensionConfig'],
  [
    'operator.cluster.x-k8s.io',
    'AddonProvider BootstrapProvider ControlPlaneProvider CoreProvider IPAMProvider InfrastructureProvider RuntimeExtensionProvider',
  ],
  // redis-enterprise-operator: status.state, status.status.
  ['app.redislabs.com', 'RedisEnterpriseCluster RedisEnterpriseDatabase'],
  // hcp-terraform-operator api/v1alpha2: runStatus.
  ['app.terraform.io', 'Module Workspace'],
  // kubeblocks apis/apps: phase Running, Failed, Abnormal, Stopped; OpsRequest: Succeed, Failed.
  ['apps.kubeblocks.io', 'Cluster Component OpsRequest'],
  ['dataprotection.kubeblocks.io', 'Backup BackupRepo Restore'],
  // gitlab-runner-operator, gitlab-operator: phase.
  ['apps.gitlab.com', 'GitLab Runner'],
  // kruise apis/apps, apis/rollouts: phase, conditions Complete, Failed; a schedule only says when it ran.
  ['apps.kruise.io', 'BroadcastJob ContainerRecreateRequest EphemeralJob ImageListPullJob ImagePullJob ResourceDistribution'],
  ['rollouts.kruise.io', 'Rollout'],
  // argocd-operator api: phase; argo-events and argo-workflows have their rows in health-delivery.
  ['argoproj.io', 'ArgoCD ArgoCDExport'],
  // trident protect, formerly astra-connector: state Running, Completed, Failed, Error; its Schedule reports nothing.
  ['astra.netapp.io', TRIDENT_PROTECT],
  ['protect.trident.netapp.io', TRIDENT_PROTECT],
  // mongodb-atlas-kubernetes api/v1: condition Ready.
  [
    'atlas.mongodb.com',
    'AtlasBackupPolicy AtlasBackupSchedule AtlasDatabaseUser AtlasDataFederation AtlasDeployment AtlasFederatedAuth AtlasPrivateEndpoint AtlasProject AtlasSearchIndexConfig AtlasStreamConnection AtlasStreamInstance AtlasTeam',
  ],
  // spicedb-operator pkg/apis/authzed: conditions.
  ['authzed.com', 'SpiceDBCluster'],
  // cluster-autoscaler-operator, openshift machine-api: phase, counters.
  ['machine.openshift.io', 'ControlPlaneMachineSet Machine MachineSet'],
  // volcano apis/batch, apis/scheduling: status.state.phase, status.phase.
  ['batch.volcano.sh', 'Job'],
  ['scheduling.volcano.sh', 'PodGroup'],
  // openshift/api build/v1: phase New, Pending, Running, Complete, Failed, Error, Cancelled.
  ['build.openshift.io', 'Build'],
  // camel-k pkg/apis/camel/v1: phase.
  ['camel.apache.org', 'Build IntegrationKit IntegrationPlatform Kamelet KameletBinding Pipe'],
  // cass-operator, k8ssandra-operator: conditions Ready, cassandraOperatorProgress.
  ['cassandra.datastax.com', 'CassandraDatacenter'],
  ['control.k8ssandra.io', 'CassandraTask K8ssandraTask'],
  ['k8ssandra.io', 'K8ssandraCluster'],
  ['medusa.k8ssandra.io', 'MedusaBackup MedusaBackupJob MedusaRestoreJob'],
  // rancher: conditions Ready, Reconciled; fleet pkg/apis: display, conditions.
  ['catalog.cattle.io', 'App ClusterRepo'],
  ['fleet.cattle.io', 'Bundle BundleDeployment Cluster ClusterGroup GitRepo HelmOp'],
  ['management.cattle.io', 'Cluster Node Project'],
  ['provisioning.cattle.io', 'Cluster'],
  // rook pkg/apis/ceph.rook.io/v1: phase Ready, Failure.
  [
    'ceph.rook.io',
    'CephBlockPoolRadosNamespace CephBucketTopic CephClient CephFilesystemMirror CephFilesystemSubVolumeGroup CephNFS CephObjectRealm CephObjectStoreUser CephObjectZone CephObjectZoneGroup CephRBDMirror',
  ],
  ['objectbucket.io', 'ObjectBucket ObjectBucketClaim'],
  // cloudnative-pg and its EDB edition: conditions Ready, phase.
  ['postgresql.k8s.enterprisedb.io', 'Backup Cluster Database'],
  // coherence-operator: phase Ready, Failed.
  ['coherence.oracle.com', 'Coherence CoherenceJob'],
  // config-sync: conditions Reconciling, Stalled, Syncing.
  ['configsync.gke.io', 'RepoSync RootSync'],
  // humio-operator: state Ready, Running (its other kinds are below).
  ['core.humio.com', 'HumioBootstrapToken HumioExternalCluster HumioPdfRenderService'],
  // couchbase operator: conditions Available, Balanced, Error.
  ['couchbase.com', 'CouchbaseCluster'],
  // datadog-operator api: conditions.
  ['datadoghq.com', 'DatadogAgent DatadogMonitor DatadogPodAutoscaler DatadogSLO'],
  // dragonfly-operator api/v1alpha1: phase.
  ['dragonflydb.io', 'Dragonfly'],
  // etcd-druid, gardener: conditions, lastOperation.state.
  ['core.gardener.cloud', 'BackupBucket BackupEntry ControllerInstallation Seed Shoot'],
  ['druid.gardener.cloud', 'Etcd EtcdCopyBackupsTask'],
  // splunk-operator api: phase Ready, Error.
  ['enterprise.splunk.com', 'ClusterManager ClusterMaster IndexerCluster LicenseManager MonitoringConsole SearchHeadCluster Standalone'],
  // flux-operator, tofu-controller, source-watcher: condition Ready.
  ['fluxcd.controlplane.io', 'FluxInstance ResourceSet ResourceSetInputProvider'],
  ['infra.contrib.fluxcd.io', 'Terraform'],
  ['source.extensions.fluxcd.io', 'ArtifactGenerator'],
  // forklift pkg/apis: conditions Ready, Succeeded, Failed.
  ['forklift.konveyor.io', 'Hook Host Migration NetworkMap Plan Provider StorageMap'],
  // envoy-gateway, kgateway, airlock: conditions of ancestors, as the gateway API has them for policies.
  ['gateway.envoyproxy.io', 'BackendTrafficPolicy ClientTrafficPolicy EnvoyExtensionPolicy EnvoyPatchPolicy SecurityPolicy'],
  ['gateway.kgateway.dev', 'BackendConfigPolicy HTTPListenerPolicy TrafficPolicy'],
  ['microgateway.airlock.com', 'AccessControlPolicy ContentSecurityPolicy CustomResponsePolicy EnvoyExtensionPolicy'],
  // emissary-ingress getambassador.io/v3alpha1: Host state Ready, Error.
  ['getambassador.io', 'Host'],
  // goharbor harbor-operator: conditions Ready.
  ['goharbor.io', 'HarborCluster'],
  // grafana: k6-operator stage; loki, tempo: conditions Ready, Pending, Failed, Degraded; grafana-operator v1beta1:
  // conditions …Synchronized.
  ['k6.io', 'K6 PrivateLoadZone TestRun'],
  ['loki.grafana.com', 'LokiStack'],
  ['tempo.grafana.com', 'TempoMonolithic TempoStack'],
  [
    'grafana.integreatly.org',
    'GrafanaContactPoint GrafanaLibraryPanel GrafanaMuteTiming GrafanaNotificationPolicy GrafanaNotificationTemplate GrafanaServiceAccount',
  ],
  ['grafana-org-operator.kubitus-project.gitlab.io', 'GrafanaInstance GrafanaOrganization'],
  // hazelcast-platform-operator: phase, state.
  ['hazelcast.com', 'Cache Hazelcast HotBackup ManagementCenter Map MultiMap Queue Topic WanReplication'],
  // kubevirt: phase, readyToUse, conditions Available, Progressing, Degraded.
  ['clone.kubevirt.io', 'VirtualMachineClone'],
  ['export.kubevirt.io', 'VirtualMachineExport'],
  ['kubevirt.io', 'VirtualMachineInstanceMigration VirtualMachineInstanceReplicaSet'],
  ['pool.kubevirt.io', 'VirtualMachinePool'],
  ['snapshot.kubevirt.io', 'VirtualMachineRestore VirtualMachineSnapshot'],
  // openshift/hive apis/hive/v1: conditions.
  ['hive.openshift.io', 'ClusterClaim ClusterDeployment ClusterPool ClusterProvision'],
  // hierarchical-namespaces: status.status.
  ['hnc.x-k8s.io', 'SubnamespaceAnchor'],
  // iam-manager: state Ready, Error, PolicyNotAllowed.
  ['iammanager.keikoproj.io', 'Iamrole'],
  // infinispan-operator: conditions WellFormed; phase.
  ['infinispan.org', 'Backup Batch Cache Infinispan Restore'],
  // mattermost-operator: state.
  ['installation.mattermost.com', 'Mattermost'],
  // nats nack: condition Ready.
  ['jetstream.nats.io', 'Account Consumer KeyValue ObjectStore Stream'],
  // minio: status.
  ['job.min.io', 'MinIOJob'],
  // mariadb-operator api/v1alpha1: condition Ready, Complete.
  ['k8s.mariadb.com', 'ExternalMariaDB MaxScale PhysicalBackup PointInTimeRecovery'],
  // nginx kubernetes-ingress: state Valid, Warning, Invalid.
  ['k8s.nginx.org', 'GlobalConfiguration Policy TransportServer VirtualServer VirtualServerRoute'],
  // koperator api: state.
  ['kafka.banzaicloud.io', 'KafkaCluster KafkaTopic KafkaUser'],
  // kappctrl, secretgen: conditions ReconcileSucceeded, ReconcileFailed.
  ['kappctrl.k14s.io', 'App'],
  ['packaging.carvel.dev', 'PackageInstall PackageRepository'],
  ['secretgen.carvel.dev', 'SecretExport SecretImport SecretTemplate'],
  ['secretgen.k14s.io', 'Certificate Password RSAKey SSHKey'],
  // kargo api/v1alpha1: phase; conditions Ready, Healthy.
  ['kargo.akuity.io', 'Project Promotion Stage Warehouse'],
  // karmada: condition Ready.
  ['cluster.karmada.io', 'Cluster'],
  ['operator.karmada.io', 'Karmada'],
  // keda http-add-on: condition Ready.
  ['http.keda.sh', 'HTTPScaledObject'],
  // kubeflow katib, notebook-controller, training-operator: conditions.
  ['kubeflow.org', 'Experiment JAXJob Notebook PaddleJob Suggestion Trial'],
  // kuadrant-operator: conditions Accepted, Enforced, Ready.
  ['kuadrant.io', 'AuthPolicy DNSPolicy DNSRecord Kuadrant RateLimitPolicy TLSPolicy'],
  // kueue apis/kueue: conditions Active, Admitted, Finished.
  ['kueue.x-k8s.io', 'AdmissionCheck'],
  // openshift logging operators: conditions Ready, Valid.
  ['logging.openshift.io', 'ClusterLogForwarder ClusterLogging'],
  ['observability.openshift.io', 'ClusterLogForwarder'],
  // longhorn: state, conditions.
  ['longhorn.io', 'Backup BackupTarget EngineImage InstanceManager Node ShareManager'],
  // seldon-core: state Available, Creating, Failed; conditions Ready.
  ['machinelearning.seldon.io', 'SeldonDeployment'],
  ['mlops.seldon.io', 'Experiment Model Pipeline SeldonRuntime Server'],
  // metal3 apis/metal3.io/v1alpha1: operationalStatus, errorMessage.
  ['metal3.io', 'BareMetalHost'],
  // milvus-operator: status.
  ['milvus.io', 'Milvus'],
  // moco, oracle, presslabs, tidb, vitess, yugabyte: conditions Ready, Available; phase.
  ['moco.cybozu.com', 'BackupPolicy MySQLCluster'],
  ['mysql.oracle.com', 'InnoDBCluster MySQLBackup'],
  ['mysql.presslabs.org', 'MysqlBackup MysqlCluster MysqlDatabase MysqlUser'],
  ['pingcap.com', 'Backup Restore TidbCluster'],
  ['operator.yugabyte.io', 'Backup Release RestoreJob StorageConfig YBUniverse'],
  // mongodb-kubernetes: phase.
  ['mongodb.com', 'MongoDBMultiCluster MongoDBSearch MongoDBUser'],
  // nvidia gpu-operator, network-operator: state ready, notReady.
  ['mellanox.com', 'NicClusterPolicy'],
  ['nvidia.com', 'ClusterPolicy NVIDIADriver'],
  // noobaa-operator: phase Ready, Rejected.
  ['noobaa.io', 'BackingStore BucketClass NamespaceStore NooBaa'],
  // topolvm, lvm-operator, openebs: state, phase.
  ['lvm.topolvm.io', 'LVMCluster'],
  ['local.openebs.io', 'LVMVolume'],
  ['cstor.openebs.io', 'CStorPoolCluster CStorPoolInstance CStorVolume'],
  // oadp-operator, velero: conditions Reconciled; phase.
  ['oadp.openshift.io', 'CloudStorage DataProtectionApplication'],
  [
    'velero.io',
    'BackupRepository DataDownload DataUpload DeleteBackupRequest DownloadRequest PodVolumeBackup PodVolumeRestore ServerStatusRequest',
  ],
  // operator-framework operator-controller: conditions Installed, Serving, Progressing.
  ['olm.operatorframework.io', 'ClusterCatalog ClusterExtension'],
  // opensearch-k8s-operator: phase, health, state.
  [
    'opensearch.opster.io',
    'OpenSearchCluster OpenSearchISMPolicy OpensearchActionGroup OpensearchComponentTemplate OpensearchIndexTemplate OpensearchRole OpensearchTenant OpensearchUser OpensearchUserRoleBinding',
  ],
  // tektoncd/operator: condition Ready.
  [
    'operator.tekton.dev',
    'TektonAddon TektonChain TektonDashboard TektonHub TektonInstallerSet TektonPipeline TektonPruner TektonResult TektonTrigger',
  ],
  ['triggers.tekton.dev', 'EventListener'],
  // victoriametrics operator api/operator/v1: updateStatus.
  ['operator.victoriametrics.com', 'VLAgent VLCluster VLogs VTCluster VTSingle'],
  // confluent-operator: phase, state.
  ['platform.confluent.io', 'ClusterLink ConfluentRolebinding KRaftController KafkaRestClass KafkaRestProxy KafkaTopic Schema'],
  // percona operators: state ready, error; Succeeded, Failed.
  ['pgv2.percona.com', 'PerconaPGBackup PerconaPGRestore'],
  ['ps.percona.com', 'PerconaServerMySQLBackup PerconaServerMySQLRestore'],
  ['psmdb.percona.com', 'PerconaServerMongoDBBackup PerconaServerMongoDBRestore'],
  ['pxc.percona.com', 'PerconaXtraDBClusterBackup PerconaXtraDBClusterRestore'],
  // crunchy postgres-operator: conditions.
  ['postgres-operator.crunchydata.com', 'CrunchyBridgeCluster PGUpgrade'],
  // pulumi-kubernetes-operator v2: conditions Ready, Complete.
  ['auto.pulumi.com', 'Update Workspace'],
  // streamnative operators: conditions Ready.
  ['pulsar.streamnative.io', 'PulsarBroker PulsarCoordinator PulsarProxy'],
  ['bookkeeper.streamnative.io', 'BookKeeperCluster'],
  ['zookeeper.streamnative.io', 'ZooKeeperCluster'],
  [
    'resource.streamnative.io',
    'PulsarConnection PulsarFunction PulsarNamespace PulsarPackage PulsarPermission PulsarSink PulsarSource PulsarTenant PulsarTopic',
  ],
  // quay-operator: conditions Available, ComponentsCreated, RolloutBlocked.
  ['quay.redhat.com', 'QuayRegistry'],
  // messaging-topology-operator: condition Ready.
  ['rabbitmq.com', 'OperatorPolicy SchemaReplication SuperStream TopicPermission'],
  // opstree redis-operator, spotahome: state.
  ['redis.redis.opstreelabs.in', 'RedisCluster'],
  // sail-operator: conditions Ready, Reconciled.
  ['sailoperator.io', 'IstioCNI IstioRevision ZTunnel'],
  // scylla-operator: conditions Available, Progressing, Degraded.
  ['scylla.scylladb.com', 'NodeConfig ScyllaCluster ScyllaDBDatacenter ScyllaDBManagerTask ScyllaDBMonitoring'],
  // service catalogs and bindings: condition Ready, Failed.
  ['binding.operators.coreos.com', 'ServiceBinding'],
  ['servicebinding.io', 'ServiceBinding'],
  ['servicecatalog.k8s.io', 'ClusterServiceBroker ServiceBinding ServiceBroker ServiceInstance'],
  // spark-kubernetes-operator: currentState; kubeflow's has its rows in health-data.
  ['spark.apache.org', 'SparkApplication SparkCluster'],
  // eck stackconfigpolicy: phase Ready, Invalid, Conflict.
  ['stackconfigpolicy.k8s.elastic.co', 'StackConfigPolicy'],
  // stackgres: conditions, process.status.
  ['stackgres.io', 'SGBackup SGDbOps SGShardedCluster'],
  // submariner-operator: conditions.
  ['submariner.io', 'Broker ServiceDiscovery Submariner'],
  // tailscale k8s-operator: conditions ConnectorReady, ProxyClassReady.
  ['tailscale.com', 'Connector DNSConfig ProxyClass ProxyGroup Recorder Tailnet'],
  // temporal-operator, temporal-worker-controller: conditions Ready.
  ['temporal.io', 'TemporalCluster TemporalClusterClient TemporalNamespace TemporalSchedule TemporalWorkerDeployment'],
  // tinkerbell: state.
  ['tinkerbell.org', 'Workflow'],
  // system-upgrade-controller: conditions LatestResolved, Complete.
  ['upgrade.cattle.io', 'Plan'],
  // vertica-kubernetes: conditions.
  ['vertica.com', 'VerticaDB'],
  // volsync api/v1alpha1: conditions, latestMoverStatus.result.
  ['volsync.backube', 'ReplicationDestination ReplicationSource'],
  ['snapscheduler.backube', 'SnapshotSchedule'],
  // group snapshots of external-snapshotter: readyToUse.
  ['groupsnapshot.storage.k8s.io', 'VolumeGroupSnapshot VolumeGroupSnapshotContent'],
  // weblogic-kubernetes-operator: conditions Completed, Available, Failed.
  ['weblogic.oracle', 'Cluster Domain'],
  // wildfly-operator: counters.
  ['wildfly.org', 'WildFlyServer'],
]

/** Operators made with Ansible: Running stays True between two runs, with the reason Successful. */
const ansible: Rule = unlessTrue(['Failure'], (reading) => {
  const running = reading.condition('Running')
  if (running?.status === 'True' && running.reason === 'Running') return waitsFor(running)
  return conditionsTogether(reading)
})

/** LogScale (Humio) tells what it found of an object: `NotFound` is no object at all. */
const humio: Rule = ({ status }) => {
  const state = text(status['state'])
  const message = oneLine(text(status['message'])) || `status.state is ${state}`
  switch (state) {
    case 'Exists':
    case 'Running':
      return HEALTHY
    case 'NotFound':
      return { word: 'Missing', reason: 'NotFound', message }
    case 'ConfigError':
      return degraded('ConfigError', message)
    case 'Unknown':
      return { word: 'Unknown', reason: 'Unknown', message }
    default:
      return {
        word: 'Progressing',
        reason: 'NotReported',
        message: state === '' ? 'its controller has not reported status.state yet' : message,
      }
  }
}

/** Many conditions of an openshift operator config; these three are the summary. */
const openshiftOperator: Rule = availableProgressingDegraded

/** redhat-cop operators write one of two conditions after each reconciliation. */
const redhatCop: Rule = (reading) => {
  const failed = ['ReconcileError', 'ReconcileFailed'].map(reading.condition).find((condition) => condition?.status === 'True')
  return failed === undefined ? reports(reading) : failedBy(failed)
}

const rowsOf = (group: string, kinds: string, rule: Rule): Array<[string, Rule]> =>
  kinds.split(' ').map((kind) => [`${group}/${kind}`, rule])

export const OPERATOR_RULES: Readonly<Record<string, Rule>> = Object.fromEntries([
  ...REPORTING.flatMap(([group, kinds]) => rowsOf(group, kinds, reports)),
  // condition Ready; False is final: astra-connector.
  ...['astra.netapp.io', 'protect.trident.netapp.io'].flatMap((group) =>
    rowsOf(group, 'Application', isTrue('Ready', { falseIs: 'Degraded' })),
  ),
  // conditions Running, Successful, Failure: awx-operator, eda-server-operator.
  ...rowsOf('automationcontroller.ansible.com', 'AutomationController AutomationControllerBackup AutomationControllerRestore', ansible),
  ...rowsOf('awx.ansible.com', 'AWX AWXBackup AWXMeshIngress AWXRestore', ansible),
  ...rowsOf('eda.ansible.com', 'EDA EDABackup EDARestore', ansible),
  // conditions Ready, Failed, Invalid, Orphan, Waiting (for the approval of an admin): 3scale-operator
  // apis/capabilities.
  ...rowsOf('capabilities.3scale.net', 'DeveloperAccount DeveloperUser', unlessStopped('Waiting', statusTogether)),
  // status.state: humio-operator api/v1alpha1.
  ...rowsOf(
    'core.humio.com',
    'HumioAction HumioAggregateAlert HumioAlert HumioFeatureFlag HumioFilterAlert HumioGroup HumioIPFilter HumioIngestToken HumioMultiClusterSearchView HumioOrganizationPermissionRole HumioOrganizationToken HumioParser HumioRepository HumioSavedQuery HumioScheduledSearch HumioSystemPermissionRole HumioSystemToken HumioUser HumioView HumioViewPermissionRole HumioViewToken',
    humio,
  ),
  // conditions Available, Progressing, Degraded: openshift/api operator/v1, hypershift, kubevirt hyperconverged.
  ...rowsOf('hco.kubevirt.io', 'HyperConverged', openshiftOperator),
  ...rowsOf('hypershift.openshift.io', 'HostedCluster', openshiftOperator),
  ...rowsOf('imageregistry.operator.openshift.io', 'Config', openshiftOperator),
  ...rowsOf('ssp.kubevirt.io', 'SSP', openshiftOperator),
  ...rowsOf('networkaddonsoperator.network.kubevirt.io', 'NetworkAddonsConfig', openshiftOperator),
  // conditions ReconcileSuccess, ReconcileError: redhat-cop/operator-utils.
  ...rowsOf('redhatcop.redhat.io', 'GroupConfig KeepalivedGroup NamespaceConfig Patch ResourceLocker UserConfig', redhatCop),
] satisfies Array<[string, Rule]>)

/** Kinds of the table that share one rule, for its test. */
export const REPORTING_KINDS: readonly string[] = REPORTING.flatMap(([group, kinds]) => kinds.split(' ').map((kind) => `${group}/${kind}`))
