// Made by scripts/patch-table.ts of the OpenAPI document of Kubernetes v1.36.3: do not edit.

/**
 * For each type with a merged list in it or below it: its fields as `name:type`, and with a strategy
 * `name:type:strategy:key`.
 */
export const PATCH_TYPES = `
v1.MutatingAdmissionPolicy metadata:v1.ObjectMeta spec:v1.MutatingAdmissionPolicySpec
v1.MutatingAdmissionPolicySpec matchConditions::merge:name
v1.MutatingWebhook matchConditions::merge:name
v1.MutatingWebhookConfiguration metadata:v1.ObjectMeta webhooks:v1.MutatingWebhook:merge:name
v1.ValidatingAdmissionPolicy metadata:v1.ObjectMeta spec:v1.ValidatingAdmissionPolicySpec
v1.ValidatingAdmissionPolicySpec matchConditions::merge:name variables::merge:name
v1.ValidatingWebhook matchConditions::merge:name
v1.ValidatingWebhookConfiguration metadata:v1.ObjectMeta webhooks:v1.ValidatingWebhook:merge:name
v1alpha1.MutatingAdmissionPolicy metadata:v1.ObjectMeta spec:v1alpha1.MutatingAdmissionPolicySpec
v1alpha1.MutatingAdmissionPolicySpec matchConditions::merge:name
v1beta1.MutatingAdmissionPolicy metadata:v1.ObjectMeta spec:v1beta1.MutatingAdmissionPolicySpec
v1beta1.MutatingAdmissionPolicySpec matchConditions::merge:name
v1.DaemonSet metadata:v1.ObjectMeta spec:v1.DaemonSetSpec status:v1.DaemonSetStatus
v1.DaemonSetSpec template:v1.PodTemplateSpec
v1.DaemonSetStatus conditions::merge:type
v1.Deployment metadata:v1.ObjectMeta spec:v1.DeploymentSpec status:v1.DeploymentStatus
v1.DeploymentSpec strategy::retainKeys template:v1.PodTemplateSpec
v1.DeploymentStatus conditions::merge:type
v1.ReplicaSet metadata:v1.ObjectMeta spec:v1.ReplicaSetSpec status:v1.ReplicaSetStatus
v1.ReplicaSetSpec template:v1.PodTemplateSpec
v1.ReplicaSetStatus conditions::merge:type
v1.StatefulSet metadata:v1.ObjectMeta spec:v1.StatefulSetSpec status:v1.StatefulSetStatus
v1.StatefulSetSpec template:v1.PodTemplateSpec volumeClaimTemplates:v1.PersistentVolumeClaim
v1.StatefulSetStatus conditions::merge:type
v2.HorizontalPodAutoscaler metadata:v1.ObjectMeta status:v2.HorizontalPodAutoscalerStatus
v2.HorizontalPodAutoscalerStatus conditions::merge:type
v1.CronJob metadata:v1.ObjectMeta spec:v1.CronJobSpec
v1.CronJobSpec jobTemplate:v1.JobTemplateSpec
v1.Job metadata:v1.ObjectMeta spec:v1.JobSpec status:v1.JobStatus
v1.JobSpec template:v1.PodTemplateSpec
v1.JobStatus conditions::merge:type
v1.JobTemplateSpec metadata:v1.ObjectMeta spec:v1.JobSpec
v1beta1.PodCertificateRequest metadata:v1.ObjectMeta status:v1beta1.PodCertificateRequestStatus
v1beta1.PodCertificateRequestStatus conditions::merge:type
v1.ComponentStatus conditions::merge:type metadata:v1.ObjectMeta
v1.Container env::merge:name ports::merge:containerPort volumeDevices::merge:devicePath volumeMounts::merge:mountPath
v1.ContainerStatus allocatedResourcesStatus::merge:name volumeMounts::merge:mountPath
v1.EphemeralContainer env::merge:name ports::merge:containerPort volumeDevices::merge:devicePath volumeMounts::merge:mountPath
v1.EphemeralVolumeSource volumeClaimTemplate:v1.PersistentVolumeClaimTemplate
v1.Namespace metadata:v1.ObjectMeta status:v1.NamespaceStatus
v1.NamespaceStatus conditions::merge:type
v1.Node metadata:v1.ObjectMeta spec:v1.NodeSpec status:v1.NodeStatus
v1.NodeSpec podCIDRs::merge
v1.NodeStatus addresses::merge:type conditions::merge:type
v1.PersistentVolumeClaim metadata:v1.ObjectMeta status:v1.PersistentVolumeClaimStatus
v1.PersistentVolumeClaimStatus conditions::merge:type
v1.Pod metadata:v1.ObjectMeta spec:v1.PodSpec status:v1.PodStatus
v1.PodSpec containers:v1.Container:merge:name ephemeralContainers:v1.EphemeralContainer:merge:name hostAliases::merge:ip imagePullSecrets::merge:name initContainers:v1.Container:merge:name resourceClaims::merge,retainKeys:name schedulingGates::merge:name topologySpreadConstraints::merge:topologyKey volumes:v1.Volume:merge,retainKeys:name
v1.PodStatus conditions::merge:type containerStatuses:v1.ContainerStatus ephemeralContainerStatuses:v1.ContainerStatus hostIPs::merge:ip initContainerStatuses:v1.ContainerStatus podIPs::merge:ip resourceClaimStatuses::merge,retainKeys:name
v1.PodTemplate metadata:v1.ObjectMeta template:v1.PodTemplateSpec
v1.PodTemplateSpec metadata:v1.ObjectMeta spec:v1.PodSpec
v1.ReplicationController metadata:v1.ObjectMeta spec:v1.ReplicationControllerSpec status:v1.ReplicationControllerStatus
v1.ReplicationControllerSpec template:v1.PodTemplateSpec
v1.ReplicationControllerStatus conditions::merge:type
v1.Service metadata:v1.ObjectMeta spec:v1.ServiceSpec status:v1.ServiceStatus
v1.ServiceAccount metadata:v1.ObjectMeta secrets::merge:name
v1.ServiceSpec ports::merge:port
v1.ServiceStatus conditions::merge:type
v1.Volume ephemeral:v1.EphemeralVolumeSource
v1.FlowSchema metadata:v1.ObjectMeta status:v1.FlowSchemaStatus
v1.FlowSchemaStatus conditions::merge:type
v1.PriorityLevelConfiguration metadata:v1.ObjectMeta status:v1.PriorityLevelConfigurationStatus
v1.PriorityLevelConfigurationStatus conditions::merge:type
v1.ServiceCIDR metadata:v1.ObjectMeta status:v1.ServiceCIDRStatus
v1.ServiceCIDRStatus conditions::merge:type
v1beta1.ServiceCIDR metadata:v1.ObjectMeta status:v1beta1.ServiceCIDRStatus
v1beta1.ServiceCIDRStatus conditions::merge:type
v1.PodDisruptionBudget metadata:v1.ObjectMeta spec:v1.PodDisruptionBudgetSpec status:v1.PodDisruptionBudgetStatus
v1.PodDisruptionBudgetSpec selector::replace
v1.PodDisruptionBudgetStatus conditions::merge:type
v1.ResourceClaim metadata:v1.ObjectMeta status:v1.ResourceClaimStatus
v1.ResourceClaimStatus reservedFor::merge:uid
v1.ResourceClaimTemplate metadata:v1.ObjectMeta spec:v1.ResourceClaimTemplateSpec
v1alpha3.DeviceTaintRule metadata:v1.ObjectMeta status:v1alpha3.DeviceTaintRuleStatus
v1alpha3.DeviceTaintRuleStatus conditions::merge:type
v1alpha3.ResourcePoolStatusRequest metadata:v1.ObjectMeta status:v1alpha3.ResourcePoolStatusRequestStatus
v1alpha3.ResourcePoolStatusRequestStatus conditions::merge:type
v1beta1.ResourceClaim metadata:v1.ObjectMeta status:v1beta1.ResourceClaimStatus
v1beta1.ResourceClaimStatus reservedFor::merge:uid
v1beta1.ResourceClaimTemplate metadata:v1.ObjectMeta spec:v1beta1.ResourceClaimTemplateSpec
v1beta2.DeviceTaintRule metadata:v1.ObjectMeta status:v1beta2.DeviceTaintRuleStatus
v1beta2.DeviceTaintRuleStatus conditions::merge:type
v1beta2.ResourceClaim metadata:v1.ObjectMeta status:v1beta2.ResourceClaimStatus
v1beta2.ResourceClaimStatus reservedFor::merge:uid
v1beta2.ResourceClaimTemplate metadata:v1.ObjectMeta spec:v1beta2.ResourceClaimTemplateSpec
v1alpha2.PodGroup metadata:v1.ObjectMeta spec:v1alpha2.PodGroupSpec status:v1alpha2.PodGroupStatus
v1alpha2.PodGroupSpec resourceClaims::merge,retainKeys:name
v1alpha2.PodGroupStatus conditions::merge:type resourceClaimStatuses::merge,retainKeys:name
v1alpha2.PodGroupTemplate resourceClaims::merge,retainKeys:name
v1alpha2.Workload metadata:v1.ObjectMeta spec:v1alpha2.WorkloadSpec
v1alpha2.WorkloadSpec podGroupTemplates:v1alpha2.PodGroupTemplate
v1.CSINode metadata:v1.ObjectMeta spec:v1.CSINodeSpec
v1.CSINodeSpec drivers::merge:name
v1beta1.StorageVersionMigration metadata:v1.ObjectMeta status:v1beta1.StorageVersionMigrationStatus
v1beta1.StorageVersionMigrationStatus conditions::merge:type
v1.CustomResourceDefinition metadata:v1.ObjectMeta spec:v1.CustomResourceDefinitionSpec
v1.CustomResourceDefinitionSpec versions:v1.CustomResourceDefinitionVersion
v1.CustomResourceDefinitionVersion schema:v1.CustomResourceValidation
v1.CustomResourceValidation openAPIV3Schema:v1.JSONSchemaProps
v1.JSONSchemaProps allOf:v1.JSONSchemaProps anyOf:v1.JSONSchemaProps not:v1.JSONSchemaProps oneOf:v1.JSONSchemaProps x-kubernetes-validations::merge:rule
v1.ObjectMeta finalizers::merge ownerReferences::merge:uid
v1.APIService metadata:v1.ObjectMeta status:v1.APIServiceStatus
v1.APIServiceStatus conditions::merge:type
`

/** `group/version/Kind=type`; without a type, only its metadata has such lists. */
export const PATCH_KINDS = `
admissionregistration.k8s.io/v1/MutatingAdmissionPolicy=v1.MutatingAdmissionPolicy
admissionregistration.k8s.io/v1/MutatingAdmissionPolicyBinding
admissionregistration.k8s.io/v1/MutatingWebhookConfiguration=v1.MutatingWebhookConfiguration
admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy=v1.ValidatingAdmissionPolicy
admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding
admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration=v1.ValidatingWebhookConfiguration
admissionregistration.k8s.io/v1alpha1/MutatingAdmissionPolicy=v1alpha1.MutatingAdmissionPolicy
admissionregistration.k8s.io/v1alpha1/MutatingAdmissionPolicyBinding
admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy=v1beta1.MutatingAdmissionPolicy
admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicyBinding
apiextensions.k8s.io/v1/CustomResourceDefinition=v1.CustomResourceDefinition apiregistration.k8s.io/v1/APIService=v1.APIService
apps/v1/ControllerRevision apps/v1/DaemonSet=v1.DaemonSet apps/v1/Deployment=v1.Deployment apps/v1/ReplicaSet=v1.ReplicaSet
apps/v1/StatefulSet=v1.StatefulSet authentication.k8s.io/v1/SelfSubjectReview authentication.k8s.io/v1/TokenRequest
authentication.k8s.io/v1/TokenReview authorization.k8s.io/v1/LocalSubjectAccessReview authorization.k8s.io/v1/SelfSubjectAccessReview
authorization.k8s.io/v1/SelfSubjectRulesReview authorization.k8s.io/v1/SubjectAccessReview autoscaling/v1/HorizontalPodAutoscaler
autoscaling/v1/Scale autoscaling/v2/HorizontalPodAutoscaler=v2.HorizontalPodAutoscaler batch/v1/CronJob=v1.CronJob batch/v1/Job=v1.Job
certificates.k8s.io/v1/CertificateSigningRequest certificates.k8s.io/v1alpha1/ClusterTrustBundle
certificates.k8s.io/v1beta1/ClusterTrustBundle certificates.k8s.io/v1beta1/PodCertificateRequest=v1beta1.PodCertificateRequest
coordination.k8s.io/v1/Lease coordination.k8s.io/v1alpha2/LeaseCandidate coordination.k8s.io/v1beta1/LeaseCandidate
discovery.k8s.io/v1/EndpointSlice events.k8s.io/v1/Event flowcontrol.apiserver.k8s.io/v1/FlowSchema=v1.FlowSchema
flowcontrol.apiserver.k8s.io/v1/PriorityLevelConfiguration=v1.PriorityLevelConfiguration internal.apiserver.k8s.io/v1alpha1/StorageVersion
networking.k8s.io/v1/IPAddress networking.k8s.io/v1/Ingress networking.k8s.io/v1/IngressClass networking.k8s.io/v1/NetworkPolicy
networking.k8s.io/v1/ServiceCIDR=v1.ServiceCIDR networking.k8s.io/v1beta1/IPAddress
networking.k8s.io/v1beta1/ServiceCIDR=v1beta1.ServiceCIDR node.k8s.io/v1/RuntimeClass policy/v1/Eviction
policy/v1/PodDisruptionBudget=v1.PodDisruptionBudget rbac.authorization.k8s.io/v1/ClusterRole
rbac.authorization.k8s.io/v1/ClusterRoleBinding rbac.authorization.k8s.io/v1/Role rbac.authorization.k8s.io/v1/RoleBinding
resource.k8s.io/v1/DeviceClass resource.k8s.io/v1/ResourceClaim=v1.ResourceClaim
resource.k8s.io/v1/ResourceClaimTemplate=v1.ResourceClaimTemplate resource.k8s.io/v1/ResourceSlice
resource.k8s.io/v1alpha3/DeviceTaintRule=v1alpha3.DeviceTaintRule
resource.k8s.io/v1alpha3/ResourcePoolStatusRequest=v1alpha3.ResourcePoolStatusRequest resource.k8s.io/v1beta1/DeviceClass
resource.k8s.io/v1beta1/ResourceClaim=v1beta1.ResourceClaim resource.k8s.io/v1beta1/ResourceClaimTemplate=v1beta1.ResourceClaimTemplate
resource.k8s.io/v1beta1/ResourceSlice resource.k8s.io/v1beta2/DeviceClass resource.k8s.io/v1beta2/DeviceTaintRule=v1beta2.DeviceTaintRule
resource.k8s.io/v1beta2/ResourceClaim=v1beta2.ResourceClaim resource.k8s.io/v1beta2/ResourceClaimTemplate=v1beta2.ResourceClaimTemplate
resource.k8s.io/v1beta2/ResourceSlice scheduling.k8s.io/v1/PriorityClass scheduling.k8s.io/v1alpha2/PodGroup=v1alpha2.PodGroup
scheduling.k8s.io/v1alpha2/Workload=v1alpha2.Workload storage.k8s.io/v1/CSIDriver storage.k8s.io/v1/CSINode=v1.CSINode
storage.k8s.io/v1/CSIStorageCapacity storage.k8s.io/v1/StorageClass storage.k8s.io/v1/VolumeAttachment
storage.k8s.io/v1/VolumeAttributesClass storage.k8s.io/v1beta1/VolumeAttributesClass
storagemigration.k8s.io/v1beta1/StorageVersionMigration=v1beta1.StorageVersionMigration v1/Binding v1/ComponentStatus=v1.ComponentStatus
v1/ConfigMap v1/Endpoints v1/Event v1/LimitRange v1/Namespace=v1.Namespace v1/Node=v1.Node v1/PersistentVolume
v1/PersistentVolumeClaim=v1.PersistentVolumeClaim v1/Pod=v1.Pod v1/PodTemplate=v1.PodTemplate
v1/ReplicationController=v1.ReplicationController v1/ResourceQuota v1/Secret v1/Service=v1.Service v1/ServiceAccount=v1.ServiceAccount
`
