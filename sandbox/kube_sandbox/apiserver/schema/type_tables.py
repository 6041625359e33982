"""Tables for `types`: properties of the built-in Go types that the OpenAPI models do not contain.

They come from the published API types of Kubernetes 1.36 (the `json:`, `patchStrategy:` and `+listType` tags in
k8s.io/api), for the kinds that this server supports.
"""

PRESENCE = """
AdmissionregistrationV1ServiceReference !namespace !name path port
AdmissionregistrationV1WebhookClientConfig url
ApiextensionsV1ServiceReference !namespace !name path port
ApiextensionsV1WebhookClientConfig url
CoreV1EndpointPort !port appProtocol
CoreV1Event !involvedObject !source !firstTimestamp !lastTimestamp !eventTime !reportingComponent !reportingInstance
CoreV1EventSeries !lastObservedTime
CoreV1ResourceClaim !name
DiscoveryV1EndpointPort name protocol port appProtocol
EventsV1Event !eventTime !regarding !deprecatedSource !deprecatedFirstTimestamp !deprecatedLastTimestamp
EventsV1EventSeries !count !lastObservedTime
FlowcontrolV1Subject !kind user group serviceAccount
RbacV1Subject !kind !name
V1AppArmorProfile !type localhostProfile
V1AttachedVolume !name !devicePath
V1AuditAnnotation !key !valueExpression
V1Binding !target
V1CSIPersistentVolumeSource !driver !volumeHandle
V1CSIVolumeSource !driver readOnly fsType
V1ClientIPConfig timeoutSeconds
V1ClusterRole !rules
V1ClusterRoleBinding !roleRef
V1ClusterTrustBundleProjection name signerName optional !path
V1Condition !type !status !reason !message
V1ConfigMap immutable
V1ConfigMapEnvSource optional
V1ConfigMapKeySelector !key optional
V1ConfigMapProjection optional
V1ConfigMapVolumeSource defaultMode optional
V1Container !name !resources restartPolicy
V1ContainerExtendedResourceRequest !containerName !resourceName !requestName
V1ContainerImage !names
V1ContainerPort !containerPort
V1ContainerResizePolicy !resourceName !restartPolicy
V1ContainerStateRunning !startedAt
V1ContainerStateTerminated !exitCode !startedAt !finishedAt
V1ContainerStatus !name !state !lastState !ready !restartCount !image !imageID started stopSignal
V1ControllerRevision !data !revision
V1CronJobSpec !schedule timeZone startingDeadlineSeconds suspend !jobTemplate successfulJobsHistoryLimit
  failedJobsHistoryLimit
V1CustomResourceColumnDefinition !name !type !jsonPath
V1CustomResourceConversion !strategy
V1CustomResourceDefinitionCondition !type !status
V1CustomResourceDefinitionNames !plural !kind
V1CustomResourceDefinitionSpec !group !names !scope !versions
V1CustomResourceDefinitionStatus !conditions !acceptedNames !storedVersions
V1CustomResourceDefinitionVersion !name !served !storage deprecationWarning
V1CustomResourceSubresourceScale !specReplicasPath !statusReplicasPath labelSelectorPath
V1DaemonEndpoint !Port
V1DaemonSetCondition !type !status
V1DaemonSetSpec ?selector !template !updateStrategy revisionHistoryLimit
V1DaemonSetStatus !currentNumberScheduled !numberMisscheduled !desiredNumberScheduled !numberReady collisionCount
V1DeleteOptions gracePeriodSeconds orphanDependents propagationPolicy ignoreStoreReadErrorWithClusterBreakingPotential
V1DeploymentCondition !type !status
V1DeploymentSpec replicas ?selector !template !strategy revisionHistoryLimit progressDeadlineSeconds
V1DeploymentStatus terminatingReplicas collisionCount
V1DownwardAPIVolumeFile !path mode
V1DownwardAPIVolumeSource defaultMode
V1EmptyDirVolumeSource sizeLimit
V1Endpoint !addresses !conditions hostname nodeName zone
V1EndpointAddress !ip nodeName
V1EndpointConditions ready serving terminating
V1EndpointSlice !addressType !endpoints !ports
V1EnvVar !name
V1EphemeralContainer !name !resources restartPolicy
V1ExemptPriorityLevelConfiguration nominalConcurrencyShares lendablePercent
V1ExpressionWarning !fieldRef !warning
V1FieldSelectorRequirement !key !operator
V1FileKeySelector !volumeName !path !key optional
V1FlowDistinguisherMethod !type
V1FlowSchemaSpec !priorityLevelConfiguration !matchingPrecedence
V1ForNode !name
V1ForZone !name
V1GRPCAction !port ?service
V1GroupSubject !name
V1HTTPGetAction !port
V1HTTPHeader !name !value
V1HTTPIngressPath ?pathType !backend
V1HTTPIngressRuleValue !paths
V1HostAlias !ip
V1HostIP !ip
V1HostPathVolumeSource !path type
V1IPBlock !cidr
V1IngressClassParametersReference apiGroup !kind !name !scope namespace
V1IngressPortStatus !port !protocol error
V1IngressServiceBackend !name !port
V1IngressSpec ingressClassName
V1IngressStatus !loadBalancer
V1JSONSchemaProps $ref maximum minimum maxLength minLength maxItems minItems multipleOf maxProperties minProperties
  x-kubernetes-preserve-unknown-fields x-kubernetes-list-type x-kubernetes-map-type
V1JobCondition !type !status
V1JobSpec parallelism completions activeDeadlineSeconds backoffLimit backoffLimitPerIndex maxFailedIndexes
  manualSelector !template ttlSecondsAfterFinished completionMode suspend podReplacementPolicy managedBy
V1JobStatus terminating failedIndexes ready
V1KeyToPath !key !path mode
V1LabelSelectorRequirement !key !operator
V1LeaseSpec holderIdentity leaseDurationSeconds leaseTransitions strategy preferredHolder
V1Lifecycle stopSignal
V1LimitRangeItem !type
V1LimitRangeSpec !limits
V1LimitResponse !type
V1LimitedPriorityLevelConfiguration ?nominalConcurrencyShares !limitResponse lendablePercent borrowingLimitPercent
V1LoadBalancerIngress ipMode
V1LocalVolumeSource !path fsType
V1MatchCondition !name !expression
V1MatchResources matchPolicy
V1ModifyVolumeStatus !status
V1MutatingWebhook !name !clientConfig failurePolicy matchPolicy ?sideEffects timeoutSeconds !admissionReviewVersions
  reinvocationPolicy
V1NFSVolumeSource !server !path
V1NamedRuleWithOperations scope
V1NamespaceCondition !type !status
V1NetworkPolicyPort protocol endPort
V1NetworkPolicySpec !podSelector
V1NodeAddress !type !address
V1NodeAllocatableResourceClaimStatus !resourceClaimName !resources
V1NodeCondition !type !status
V1NodeDaemonEndpoints !kubeletEndpoint
V1NodeSelector !nodeSelectorTerms
V1NodeSelectorRequirement !key !operator
V1NodeStatus !daemonEndpoints !nodeInfo
V1NodeSystemInfo !machineID !systemUUID !bootID !kernelVersion !osImage !containerRuntimeVersion !kubeletVersion
  !kubeProxyVersion !operatingSystem !architecture
V1NonResourcePolicyRule !verbs !nonResourceURLs
V1NonResourceRule !verbs
V1ObjectFieldSelector !fieldPath
V1ObjectMeta deletionGracePeriodSeconds
V1OwnerReference !apiVersion !kind !name !uid controller blockOwnerDeletion
V1ParamRef parameterNotFoundAction
V1PersistentVolumeClaimCondition !type !status
V1PersistentVolumeClaimSpec !resources storageClassName volumeMode volumeAttributesClassName
V1PersistentVolumeClaimStatus currentVolumeAttributesClassName
V1PersistentVolumeClaimVolumeSource !claimName
V1PersistentVolumeSpec volumeMode volumeAttributesClassName
V1PodAffinityTerm !topologyKey
V1PodCertificateProjection maxExpirationSeconds
V1PodCondition !type !status
V1PodDNSConfigOption value
V1PodDisruptionBudgetSpec unhealthyPodEvictionPolicy
V1PodDisruptionBudgetStatus !disruptionsAllowed !currentHealthy !desiredHealthy !expectedPods
V1PodExtendedResourceClaimStatus !requestMappings !resourceClaimName
V1PodFailurePolicy !rules
V1PodFailurePolicyOnExitCodesRequirement containerName !operator !values
V1PodFailurePolicyOnPodConditionsPattern !type !status
V1PodFailurePolicyRule !action
V1PodIP !ip
V1PodOS !name
V1PodReadinessGate !conditionType
V1PodResourceClaim !name resourceClaimName resourceClaimTemplateName
V1PodResourceClaimStatus !name resourceClaimName
V1PodSchedulingGate !name
V1PodSchedulingGroup podGroupName
V1PodSecurityContext runAsUser runAsGroup runAsNonRoot supplementalGroupsPolicy fsGroup fsGroupChangePolicy
  seLinuxChangePolicy
V1PodSpec !containers terminationGracePeriodSeconds activeDeadlineSeconds automountServiceAccountToken
  shareProcessNamespace priority runtimeClassName enableServiceLinks preemptionPolicy setHostnameAsFQDN hostUsers
  hostnameOverride
V1PodTemplate !template
V1PolicyRule !verbs
V1PolicyRulesWithSubjects !subjects
V1PortStatus !port !protocol error
V1Preconditions uid resourceVersion
V1PreferredSchedulingTerm !weight !preference
V1PriorityClass !value preemptionPolicy
V1PriorityLevelConfigurationReference !name
V1PriorityLevelConfigurationSpec !type
V1Probe terminationGracePeriodSeconds
V1ProjectedVolumeSource !sources defaultMode
V1QueuingConfiguration !queues !handSize !queueLengthLimit
V1ReplicaSetCondition !type !status
V1ReplicaSetSpec replicas ?selector !template
V1ReplicaSetStatus !replicas terminatingReplicas
V1ReplicationControllerCondition !type !status
V1ReplicationControllerSpec replicas
V1ReplicationControllerStatus !replicas
V1ResourceFieldSelector !resource !divisor
V1ResourceHealth !resourceID message
V1ResourcePolicyRule !verbs !apiGroups !resources !namespaces
V1ResourceRule !verbs
V1ResourceStatus !name
V1Role !rules
V1RoleBinding !roleRef
V1RoleRef !apiGroup !kind !name
V1RollingUpdateStatefulSetStrategy partition
V1RuleWithOperations scope
V1ScaleStatus !replicas
V1ScopedResourceSelectorRequirement !scopeName !operator
V1SeccompProfile !type localhostProfile
V1Secret immutable
V1SecretEnvSource optional
V1SecretKeySelector !key optional
V1SecretProjection optional
V1SecretVolumeSource defaultMode optional
V1SecurityContext privileged runAsUser runAsGroup runAsNonRoot readOnlyRootFilesystem allowPrivilegeEscalation
  procMount
V1SelectableField !jsonPath
V1SelfSubjectReviewStatus !userInfo
V1ServiceAccount automountServiceAccountToken
V1ServiceAccountSubject !namespace !name
V1ServiceAccountTokenProjection expirationSeconds !path
V1ServicePort appProtocol !port !targetPort
V1ServiceSpec ipFamilyPolicy allocateLoadBalancerNodePorts loadBalancerClass internalTrafficPolicy trafficDistribution
V1ServiceStatus !loadBalancer
V1SleepAction !seconds
V1StatefulSetCondition !type !status
V1StatefulSetOrdinals !start
V1StatefulSetSpec replicas ?selector !template !serviceName !updateStrategy revisionHistoryLimit
V1StatefulSetStatus !replicas collisionCount !availableReplicas
V1StorageClass !provisioner reclaimPolicy allowVolumeExpansion volumeBindingMode
V1SubjectAccessReviewStatus !allowed
V1SubjectRulesReviewStatus !resourceRules !nonResourceRules !incomplete
V1SuccessPolicy !rules
V1SuccessPolicyRule succeededIndexes succeededCount
V1Sysctl !name !value
V1TCPSocketAction !port
V1Taint !key !effect
V1TokenRequestSpec !audiences ?expirationSeconds ?boundObjectRef
V1TokenRequestStatus !token !expirationTimestamp
V1TokenReviewStatus !user
V1Toleration tolerationSeconds
V1TopologySelectorLabelRequirement !key !values
V1TopologySpreadConstraint !maxSkew !topologyKey !whenUnsatisfiable minDomains nodeAffinityPolicy nodeTaintsPolicy
V1TypedLocalObjectReference ?apiGroup !kind !name
V1TypedObjectReference ?apiGroup !kind !name namespace
V1UserSubject !name
V1ValidatingWebhook !name !clientConfig failurePolicy matchPolicy ?sideEffects timeoutSeconds !admissionReviewVersions
V1Validation !expression reason
V1ValidationRule !rule reason optionalOldSelf
V1Variable !name !expression
V1Volume !name
V1VolumeDevice !name !devicePath
V1VolumeMount !name recursiveReadOnly !mountPath mountPropagation
V1VolumeMountStatus !name !mountPath recursiveReadOnly
V1WebhookConversion !conversionReviewVersions
V1WeightedPodAffinityTerm !weight !podAffinityTerm
V2ContainerResourceMetricSource !name !target !container
V2ContainerResourceMetricStatus !name !current !container
V2CrossVersionObjectReference !kind !name
V2ExternalMetricSource !metric !target
V2ExternalMetricStatus !metric !current
V2HPAScalingPolicy !type !value !periodSeconds
V2HPAScalingRules stabilizationWindowSeconds selectPolicy tolerance
V2HorizontalPodAutoscalerCondition !type !status
V2HorizontalPodAutoscalerSpec !scaleTargetRef minReplicas !maxReplicas
V2HorizontalPodAutoscalerStatus observedGeneration !desiredReplicas !currentMetrics
V2MetricIdentifier !name
V2MetricSpec !type
V2MetricStatus !type
V2MetricTarget !type value averageValue averageUtilization
V2MetricValueStatus value averageValue averageUtilization
V2ObjectMetricSource !describedObject !target !metric
V2ObjectMetricStatus !metric !current !describedObject
V2PodsMetricSource !metric !target
V2PodsMetricStatus !metric !current
V2ResourceMetricSource !name !target
V2ResourceMetricStatus !name !current
"""
"""The encoding of fields per model.

`!field` is encoded even when it is empty (no omitempty, or a struct by value). `?field` is encoded as null when it is
empty. A field without a mark is a pointer to a scalar: its zero value is encoded, its absence is not. All other
scalars, lists and maps are omitted when they are empty, and structs when they are null. `metadata` is always a struct
by value, as are `spec` and `status` next to it."""

TIMES_BY_VALUE = frozenset({"lastTransitionTime", "lastProbeTime", "lastUpdateTime", "lastHeartbeatTime"})
"""Times that are encoded as null when they are not set, in all models."""

INT64 = frozenset({
    "activeDeadlineSeconds", "deletionGracePeriodSeconds", "expirationSeconds", "fsGroup", "generation", "gid",
    "gracePeriodSeconds", "maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties",
    "observedGeneration", "revision", "runAsGroup", "runAsUser", "seconds", "sizeBytes", "startingDeadlineSeconds",
    "supplementalGroups", "terminationGracePeriodSeconds", "tolerationSeconds", "uid",
})  # fmt: skip
"""Integers with 64 bits. All other integers have 32 bits."""

INT_OR_STRING = frozenset({"port", "targetPort", "maxSurge", "maxUnavailable", "minAvailable"})
"""Fields that are an integer or a string. Their type in the models is `object`."""

QUANTITIES = frozenset({
    "limits", "requests", "capacity", "allocatable", "hard", "used", "overhead", "allocatedResources", "max", "min",
    "default", "defaultRequest", "maxLimitRequestRatio", "sizeLimit", "divisor", "averageValue",
    "V2MetricTarget.value", "V2MetricValueStatus.value",
})  # fmt: skip
"""Quantities and maps of quantities. Their type in the models is string."""

BYTES = frozenset({
    "V1Secret.data", "V1ConfigMap.binaryData", "AdmissionregistrationV1WebhookClientConfig.caBundle",
    "ApiextensionsV1WebhookClientConfig.caBundle",
})  # fmt: skip
"""Bytes in base64 and maps of them. Their type in the models is string."""

MICRO_TIMES = frozenset({"acquireTime", "renewTime", "eventTime", "lastObservedTime"})

MERGED_LISTS = {
    "V1Container": {
        "env": "name", "ports": "containerPort protocol", "volumeDevices": "devicePath", "volumeMounts": "mountPath",
    },
    "V1ContainerStatus": {"allocatedResourcesStatus": "name", "volumeMounts": "mountPath"},
    "V1DaemonSetStatus": {"conditions": "type"},
    "V1DeploymentStatus": {"conditions": "type"},
    "V1EphemeralContainer": {
        "env": "name", "ports": "containerPort protocol", "volumeDevices": "devicePath", "volumeMounts": "mountPath",
    },
    "V1FlowSchemaStatus": {"conditions": "type"},
    "V1JSONSchemaProps": {"x-kubernetes-validations": "rule"},
    "V1MutatingWebhook": {"matchConditions": "name"},
    "V1MutatingWebhookConfiguration": {"webhooks": "name"},
    "V1NamespaceStatus": {"conditions": "type"},
    "V1NodeStatus": {"addresses": "type", "conditions": "type"},
    "V1ObjectMeta": {"ownerReferences": "uid"},
    "V1PersistentVolumeClaimStatus": {"conditions": "type"},
    "V1PodDisruptionBudgetStatus": {"conditions": "type"},
    "V1PodSpec": {
        "containers": "name", "ephemeralContainers": "name", "hostAliases": "ip", "imagePullSecrets": "name",
        "initContainers": "name", "resourceClaims": "name", "schedulingGates": "name",
        "topologySpreadConstraints": "topologyKey whenUnsatisfiable", "volumes": "name",
    },
    "V1PodStatus": {"conditions": "type", "podIPs": "ip", "resourceClaimStatuses": "name"},
    "V1PriorityLevelConfigurationStatus": {"conditions": "type"},
    "V1ReplicaSetStatus": {"conditions": "type"},
    "V1ReplicationControllerStatus": {"conditions": "type"},
    "V1ServiceAccount": {"secrets": "name"},
    "V1ServiceSpec": {"ports": "port protocol"},
    "V1ServiceStatus": {"conditions": "type"},
    "V1StatefulSetStatus": {"conditions": "type"},
    "V1ValidatingAdmissionPolicySpec": {"matchConditions": "name", "variables": "name"},
    "V1ValidatingWebhook": {"matchConditions": "name"},
    "V1ValidatingWebhookConfiguration": {"webhooks": "name"},
    "V2HorizontalPodAutoscalerStatus": {"conditions": "type"},
}  # fmt: skip
"""Lists that are merged by key, with the key fields. A strategic merge patch uses only the first key field."""

APPLIED_LISTS = {
    "V1CustomResourceDefinitionStatus": {"conditions": "type"},
    "V1ResourceRequirements": {"claims": "name"},
    "V1ResourceStatus": {"resources": "resourceID"},
    "V1ValidatingAdmissionPolicyStatus": {"conditions": "type"},
}
"""Lists that only server-side apply merges by key."""

PATCHED_LISTS = {"V1JobStatus": {"conditions": "type"}, "V1PodStatus": {"hostIPs": "ip"}}
"""Lists that only strategic merge patches merge by key."""

SETS = frozenset({
    "V1ObjectMeta.finalizers", "V1NodeSpec.podCIDRs", "V1ContainerRestartRuleOnExitCodes.values",
    "V1Endpoint.addresses", "V1PodFailurePolicyOnExitCodesRequirement.values", "V1UncountedTerminatedPods.failed",
    "V1UncountedTerminatedPods.succeeded", "V1ValidatingAdmissionPolicyBindingSpec.validationActions",
})  # fmt: skip
"""Lists of scalars that server-side apply merges item by item."""

PATCHED_SETS = frozenset({"V1ObjectMeta.finalizers", "V1NodeSpec.podCIDRs"})
"""Lists of scalars that a strategic merge patch adds to."""

REPLACED_BY_PATCH = frozenset({"V1PodDisruptionBudgetSpec.selector"})
"""Structs that a strategic merge patch replaces."""

ATOMIC_MODELS = frozenset({
    "ConfigMapKeySelector", "CrossVersionObjectReference", "EndpointAddress", "EndpointPort", "FileKeySelector",
    "LabelSelector", "LocalObjectReference", "MatchResources", "NamedRuleWithOperations", "NodeSelector",
    "NodeSelectorTerm", "ObjectFieldSelector", "ObjectReference", "OwnerReference", "ParamKind", "ParamRef",
    "ResourceFieldSelector", "RoleRef", "ScopeSelector", "SecretKeySelector", "SecretReference", "ServiceBackendPort",
    "Subject", "TypedLocalObjectReference", "Variable",
})  # fmt: skip
"""Structs that server-side apply replaces as a whole, by their Go name."""

ATOMIC_MAPS = frozenset({"V1PodSpec.nodeSelector", "V1ServiceSpec.selector", "V1ReplicationControllerSpec.selector"})
"""Maps that server-side apply replaces as a whole."""

GRANULAR_STRUCTS = frozenset({"V1PersistentVolumeSpec.claimRef"})
"""Fields with an atomic model that server-side apply merges nevertheless."""
