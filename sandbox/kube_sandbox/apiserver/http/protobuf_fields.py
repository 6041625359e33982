"""The protobuf field numbers of built-in kinds (k8s.io/api, `generated.proto`).

Each line describes one message; indented lines continue it. It contains the name of the model and then the fields in
the order of their numbers. Numbers start at 1; a number before a colon sets the number of that field. `*(...)` is a
nested message whose fields (in parentheses) JSON shows as fields of the outer message.
"""

import re
from collections.abc import Mapping
from functools import cache

Numbers = Mapping[int, "str | Mapping[int, str]"]
"""The fields of a message by number: the name, or the fields of a nested message that JSON flattens."""


@cache
def messages() -> Mapping[str, Numbers]:
    """The fields of all messages, by the name of the model."""
    joined = re.sub(r"\n +", " ", _MESSAGES.strip()).replace(", ", ",")
    lines = (line.partition(" ") for line in joined.splitlines())
    return {model: _numbered(fields.split()) for model, _, fields in lines}


def _numbered(fields: list[str]) -> Numbers:
    numbers: dict[int, str | Mapping[int, str]] = {}
    number = 0
    for field in fields:
        explicit, _, name = field.rpartition(":") if "(" not in field else ("", "", field)
        number = int(explicit) if explicit else number + 1
        numbers[number] = _flattened(name[2:-1].split(",")) if name.startswith("*") else name
    return numbers


def _flattened(names: list[str]) -> Mapping[int, str]:
    return dict(enumerate(names, start=1))


_MESSAGES = """
AdmissionregistrationV1ServiceReference namespace name path port
AdmissionregistrationV1WebhookClientConfig service caBundle url
AuthenticationV1TokenRequest metadata spec status
CoreV1EndpointPort name port protocol appProtocol
CoreV1Event metadata involvedObject reason message source firstTimestamp lastTimestamp count type eventTime
  series action related reportingComponent reportingInstance
CoreV1EventSeries count lastObservedTime
CoreV1ResourceClaim name request
DiscoveryV1EndpointPort name protocol port appProtocol
EventsV1Event metadata eventTime series reportingController reportingInstance action reason regarding
  related note type deprecatedSource deprecatedFirstTimestamp deprecatedLastTimestamp deprecatedCount
EventsV1EventSeries count lastObservedTime
RbacV1Subject kind apiGroup name namespace
StorageV1TokenRequest audience expirationSeconds
V1AWSElasticBlockStoreVolumeSource volumeID fsType partition readOnly
V1Affinity nodeAffinity podAffinity podAntiAffinity
V1AggregationRule clusterRoleSelectors
V1AppArmorProfile type localhostProfile
V1AttachedVolume name devicePath
V1AuditAnnotation key valueExpression
V1AzureDiskVolumeSource diskName diskURI cachingMode fsType readOnly kind
V1AzureFilePersistentVolumeSource secretName shareName readOnly secretNamespace
V1AzureFileVolumeSource secretName shareName readOnly
V1Binding metadata target
V1BoundObjectReference kind apiVersion name uid
V1CSIPersistentVolumeSource driver volumeHandle readOnly fsType volumeAttributes controllerPublishSecretRef
  nodeStageSecretRef nodePublishSecretRef controllerExpandSecretRef nodeExpandSecretRef
V1CSIVolumeSource driver readOnly fsType volumeAttributes nodePublishSecretRef
V1Capabilities add drop
V1CephFSPersistentVolumeSource monitors path user secretFile secretRef readOnly
V1CephFSVolumeSource monitors path user secretFile secretRef readOnly
V1CinderPersistentVolumeSource volumeID fsType readOnly secretRef
V1CinderVolumeSource volumeID fsType readOnly secretRef
V1ClientIPConfig timeoutSeconds
V1ClusterRole metadata rules aggregationRule
V1ClusterRoleBinding metadata subjects roleRef
V1ClusterTrustBundleProjection name signerName labelSelector path optional
V1ComponentCondition type status message error
V1Condition type status observedGeneration lastTransitionTime reason message
V1ConfigMap metadata data binaryData immutable
V1ConfigMapEnvSource *(name) optional
V1ConfigMapKeySelector *(name) key optional
V1ConfigMapNodeConfigSource namespace name uid resourceVersion kubeletConfigKey
V1ConfigMapProjection *(name) items 4:optional
V1ConfigMapVolumeSource *(name) items defaultMode optional
V1Container name image command args workingDir ports env resources volumeMounts livenessProbe readinessProbe
  lifecycle terminationMessagePath imagePullPolicy securityContext stdin stdinOnce tty envFrom
  terminationMessagePolicy volumeDevices startupProbe resizePolicy restartPolicy restartPolicyRules
V1ContainerExtendedResourceRequest containerName resourceName requestName
V1ContainerImage names sizeBytes
V1ContainerPort name hostPort containerPort protocol hostIP
V1ContainerResizePolicy resourceName restartPolicy
V1ContainerRestartRule action exitCodes
V1ContainerRestartRuleOnExitCodes operator values
V1ContainerState waiting running terminated
V1ContainerStateRunning startedAt
V1ContainerStateTerminated exitCode signal reason message startedAt finishedAt containerID
V1ContainerStateWaiting reason message
V1ContainerStatus name state lastState ready restartCount image imageID containerID started
  allocatedResources resources volumeMounts user allocatedResourcesStatus stopSignal
V1ContainerUser linux
V1ControllerRevision metadata data revision
V1CronJob metadata spec status
V1CronJobSpec schedule startingDeadlineSeconds concurrencyPolicy suspend jobTemplate
  successfulJobsHistoryLimit failedJobsHistoryLimit timeZone
V1CronJobStatus active 4:lastScheduleTime lastSuccessfulTime
V1DaemonEndpoint Port
V1DaemonSet metadata spec status
V1DaemonSetCondition type status lastTransitionTime reason message
V1DaemonSetSpec selector template updateStrategy minReadySeconds 6:revisionHistoryLimit
V1DaemonSetStatus currentNumberScheduled numberMisscheduled desiredNumberScheduled numberReady
  observedGeneration updatedNumberScheduled numberAvailable numberUnavailable collisionCount conditions
V1DaemonSetUpdateStrategy type rollingUpdate
V1DeleteOptions gracePeriodSeconds preconditions orphanDependents propagationPolicy dryRun
  ignoreStoreReadErrorWithClusterBreakingPotential
V1Deployment metadata spec status
V1DeploymentCondition type status 4:reason message lastUpdateTime lastTransitionTime
V1DeploymentSpec replicas selector template strategy minReadySeconds revisionHistoryLimit paused
  9:progressDeadlineSeconds
V1DeploymentStatus observedGeneration replicas updatedReplicas availableReplicas unavailableReplicas
  conditions readyReplicas collisionCount terminatingReplicas
V1DeploymentStrategy type rollingUpdate
V1DownwardAPIProjection items
V1DownwardAPIVolumeFile path fieldRef resourceFieldRef mode
V1DownwardAPIVolumeSource items defaultMode
V1EmptyDirVolumeSource medium sizeLimit
V1Endpoint addresses conditions hostname targetRef deprecatedTopology nodeName zone hints
V1EndpointAddress ip targetRef hostname nodeName
V1EndpointConditions ready serving terminating
V1EndpointHints forZones forNodes
V1EndpointSlice metadata endpoints ports addressType
V1EndpointSubset addresses notReadyAddresses ports
V1Endpoints metadata subsets
V1EnvFromSource prefix configMapRef secretRef
V1EnvVar name value valueFrom
V1EnvVarSource fieldRef resourceFieldRef configMapKeyRef secretKeyRef fileKeyRef
V1EphemeralContainer
  *(name,image,command,args,workingDir,ports,env,resources,volumeMounts,livenessProbe,readinessProbe,
  lifecycle,terminationMessagePath,imagePullPolicy,securityContext,stdin,stdinOnce,tty,envFrom,
  terminationMessagePolicy,volumeDevices,startupProbe,resizePolicy,restartPolicy,restartPolicyRules)
  targetContainerName
V1EphemeralVolumeSource volumeClaimTemplate
V1EventSource component host
V1Eviction metadata deleteOptions
V1ExecAction command
V1ExpressionWarning 2:fieldRef warning
V1FCVolumeSource targetWWNs lun fsType readOnly wwids
V1FieldSelectorAttributes rawSelector requirements
V1FieldSelectorRequirement key operator values
V1FileKeySelector volumeName path key optional
V1FlexPersistentVolumeSource driver fsType secretRef readOnly options
V1FlexVolumeSource driver fsType secretRef readOnly options
V1FlockerVolumeSource datasetName datasetUUID
V1ForNode name
V1ForZone name
V1GCEPersistentDiskVolumeSource pdName fsType partition readOnly
V1GRPCAction port service
V1GitRepoVolumeSource repository revision directory
V1GlusterfsPersistentVolumeSource endpoints path readOnly endpointsNamespace
V1GlusterfsVolumeSource endpoints path readOnly
V1HTTPGetAction path port host scheme httpHeaders
V1HTTPHeader name value
V1HTTPIngressPath path backend pathType
V1HTTPIngressRuleValue paths
V1HostAlias ip hostnames
V1HostIP ip
V1HostPathVolumeSource path type
V1IPBlock cidr except
V1ISCSIPersistentVolumeSource targetPortal iqn lun iscsiInterface fsType readOnly portals chapAuthDiscovery
  10:secretRef chapAuthSession initiatorName
V1ISCSIVolumeSource targetPortal iqn lun iscsiInterface fsType readOnly portals chapAuthDiscovery
  10:secretRef chapAuthSession initiatorName
V1ImageVolumeSource reference pullPolicy
V1ImageVolumeStatus imageRef
V1Ingress metadata spec status
V1IngressBackend 3:resource service
V1IngressClass metadata spec
V1IngressClassParametersReference apiGroup kind name scope namespace
V1IngressClassSpec controller parameters
V1IngressLoadBalancerIngress ip hostname 4:ports
V1IngressLoadBalancerStatus ingress
V1IngressPortStatus port protocol error
V1IngressRule host *(http)
V1IngressServiceBackend name port
V1IngressSpec defaultBackend tls rules ingressClassName
V1IngressStatus loadBalancer
V1IngressTLS hosts secretName
V1Job metadata spec status
V1JobCondition type status lastProbeTime lastTransitionTime reason message
V1JobSpec parallelism completions activeDeadlineSeconds selector manualSelector template backoffLimit
  ttlSecondsAfterFinished completionMode suspend podFailurePolicy backoffLimitPerIndex maxFailedIndexes
  podReplacementPolicy managedBy successPolicy
V1JobStatus conditions startTime completionTime active succeeded failed completedIndexes
  uncountedTerminatedPods ready failedIndexes terminating
V1JobTemplateSpec metadata spec
V1KeyToPath key path mode
V1LabelSelector matchLabels matchExpressions
V1LabelSelectorAttributes rawSelector requirements
V1LabelSelectorRequirement key operator values
V1Lease metadata spec
V1LeaseSpec holderIdentity leaseDurationSeconds acquireTime renewTime leaseTransitions strategy
  preferredHolder
V1Lifecycle postStart preStop stopSignal
V1LifecycleHandler exec httpGet tcpSocket sleep
V1LimitRange metadata spec
V1LimitRangeItem type max min default defaultRequest maxLimitRequestRatio
V1LimitRangeSpec limits
V1LinuxContainerUser uid gid supplementalGroups
V1LoadBalancerIngress ip hostname ipMode ports
V1LoadBalancerStatus ingress
V1LocalObjectReference name
V1LocalSubjectAccessReview metadata spec status
V1LocalVolumeSource path fsType
V1ManagedFieldsEntry manager operation apiVersion time 6:fieldsType fieldsV1 subresource
V1MatchCondition name expression
V1MatchResources namespaceSelector objectSelector resourceRules excludeResourceRules 7:matchPolicy
V1ModifyVolumeStatus targetVolumeAttributesClassName status
V1MutatingWebhook name clientConfig rules failurePolicy namespaceSelector sideEffects timeoutSeconds
  admissionReviewVersions matchPolicy reinvocationPolicy objectSelector matchConditions
V1MutatingWebhookConfiguration metadata webhooks
V1NFSVolumeSource server path readOnly
V1NamedRuleWithOperations resourceNames
V1Namespace metadata spec status
V1NamespaceCondition type status 4:lastTransitionTime reason message
V1NamespaceSpec finalizers
V1NamespaceStatus phase conditions
V1NetworkPolicy metadata spec
V1NetworkPolicyEgressRule ports to
V1NetworkPolicyIngressRule ports from
V1NetworkPolicyPeer podSelector namespaceSelector ipBlock
V1NetworkPolicyPort protocol port endPort
V1NetworkPolicySpec podSelector ingress egress policyTypes
V1Node metadata spec status
V1NodeAddress type address
V1NodeAffinity requiredDuringSchedulingIgnoredDuringExecution
  preferredDuringSchedulingIgnoredDuringExecution
V1NodeAllocatableResourceClaimStatus resourceClaimName containers resources
V1NodeCondition type status lastHeartbeatTime lastTransitionTime reason message
V1NodeConfigSource 2:configMap
V1NodeConfigStatus assigned active lastKnownGood error
V1NodeDaemonEndpoints kubeletEndpoint
V1NodeFeatures supplementalGroupsPolicy
V1NodeRuntimeHandler name features
V1NodeRuntimeHandlerFeatures recursiveReadOnlyMounts userNamespaces
V1NodeSelector nodeSelectorTerms
V1NodeSelectorRequirement key operator values
V1NodeSelectorTerm matchExpressions matchFields
V1NodeSpec podCIDR externalID providerID unschedulable taints configSource podCIDRs
V1NodeStatus capacity allocatable phase conditions addresses daemonEndpoints nodeInfo images volumesInUse
  volumesAttached config runtimeHandlers features declaredFeatures
V1NodeSwapStatus capacity
V1NodeSystemInfo machineID systemUUID bootID kernelVersion osImage containerRuntimeVersion kubeletVersion
  kubeProxyVersion operatingSystem architecture swap
V1NonResourceAttributes path verb
V1NonResourceRule verbs nonResourceURLs
V1ObjectFieldSelector apiVersion fieldPath
V1ObjectMeta name generateName namespace selfLink uid resourceVersion generation creationTimestamp
  deletionTimestamp deletionGracePeriodSeconds labels annotations ownerReferences finalizers
  17:managedFields
V1ObjectReference kind namespace name uid apiVersion resourceVersion fieldPath
V1Overhead podFixed
V1OwnerReference kind 3:name uid apiVersion controller blockOwnerDeletion
V1ParamKind apiVersion kind
V1ParamRef name namespace selector parameterNotFoundAction
V1PersistentVolume metadata spec status
V1PersistentVolumeClaim metadata spec status
V1PersistentVolumeClaimCondition type status lastProbeTime lastTransitionTime reason message
V1PersistentVolumeClaimSpec accessModes resources volumeName selector storageClassName volumeMode dataSource
  dataSourceRef volumeAttributesClassName
V1PersistentVolumeClaimStatus phase accessModes capacity conditions allocatedResources
  7:allocatedResourceStatuses currentVolumeAttributesClassName modifyVolumeStatus
V1PersistentVolumeClaimTemplate metadata spec
V1PersistentVolumeClaimVolumeSource claimName readOnly
V1PersistentVolumeSpec capacity
  *(gcePersistentDisk,awsElasticBlockStore,hostPath,glusterfs,nfs,rbd,iscsi,cinder,cephfs,fc,flocker,
  flexVolume,azureFile,vsphereVolume,quobyte,azureDisk,photonPersistentDisk,portworxVolume,scaleIO,local,
  storageos,csi)
  accessModes claimRef persistentVolumeReclaimPolicy storageClassName mountOptions volumeMode nodeAffinity
  volumeAttributesClassName
V1PersistentVolumeStatus phase message reason lastPhaseTransitionTime
V1PhotonPersistentDiskVolumeSource pdID fsType
V1Pod metadata spec status
V1PodAffinity requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution
V1PodAffinityTerm labelSelector namespaces topologyKey namespaceSelector matchLabelKeys mismatchLabelKeys
V1PodAntiAffinity requiredDuringSchedulingIgnoredDuringExecution
  preferredDuringSchedulingIgnoredDuringExecution
V1PodCertificateProjection signerName keyType maxExpirationSeconds credentialBundlePath keyPath
  certificateChainPath userAnnotations
V1PodCondition type status lastProbeTime lastTransitionTime reason message observedGeneration
V1PodDNSConfig nameservers searches options
V1PodDNSConfigOption name value
V1PodDisruptionBudget metadata spec status
V1PodDisruptionBudgetSpec minAvailable selector maxUnavailable unhealthyPodEvictionPolicy
V1PodDisruptionBudgetStatus observedGeneration disruptedPods disruptionsAllowed currentHealthy
  desiredHealthy expectedPods conditions
V1PodExtendedResourceClaimStatus requestMappings resourceClaimName
V1PodFailurePolicy rules
V1PodFailurePolicyOnExitCodesRequirement containerName operator values
V1PodFailurePolicyOnPodConditionsPattern type status
V1PodFailurePolicyRule action onExitCodes onPodConditions
V1PodIP ip
V1PodOS name
V1PodReadinessGate conditionType
V1PodResourceClaim name 3:resourceClaimName resourceClaimTemplateName
V1PodResourceClaimStatus name resourceClaimName
V1PodSchedulingGate name
V1PodSchedulingGroup podGroupName
V1PodSecurityContext seLinuxOptions runAsUser runAsNonRoot supplementalGroups fsGroup runAsGroup sysctls
  windowsOptions fsGroupChangePolicy seccompProfile appArmorProfile supplementalGroupsPolicy
  seLinuxChangePolicy
V1PodSpec volumes containers restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds dnsPolicy
  nodeSelector serviceAccountName serviceAccount nodeName hostNetwork hostPID hostIPC securityContext
  imagePullSecrets hostname subdomain affinity schedulerName initContainers automountServiceAccountToken
  tolerations hostAliases priorityClassName priority dnsConfig shareProcessNamespace readinessGates
  runtimeClassName enableServiceLinks preemptionPolicy overhead topologySpreadConstraints
  ephemeralContainers setHostnameAsFQDN os hostUsers schedulingGates resourceClaims resources
  hostnameOverride 43:schedulingGroup
V1PodStatus phase conditions message reason hostIP podIP startTime containerStatuses qosClass
  initContainerStatuses nominatedNodeName podIPs ephemeralContainerStatuses resize resourceClaimStatuses
  hostIPs observedGeneration extendedResourceClaimStatus allocatedResources resources
  nodeAllocatableResourceClaimStatuses
V1PodTemplate metadata template
V1PodTemplateSpec metadata spec
V1PolicyRule verbs apiGroups resources resourceNames nonResourceURLs
V1PortStatus port protocol error
V1PortworxVolumeSource volumeID fsType readOnly
V1Preconditions uid resourceVersion
V1PreferredSchedulingTerm weight preference
V1PriorityClass metadata value globalDefault description preemptionPolicy
V1Probe *(exec,httpGet,tcpSocket,grpc) initialDelaySeconds timeoutSeconds periodSeconds successThreshold
  failureThreshold terminationGracePeriodSeconds
V1ProjectedVolumeSource sources defaultMode
V1QuobyteVolumeSource registry volume readOnly user group tenant
V1RBDPersistentVolumeSource monitors image fsType pool user keyring secretRef readOnly
V1RBDVolumeSource monitors image fsType pool user keyring secretRef readOnly
V1ReplicaSet metadata spec status
V1ReplicaSetCondition type status lastTransitionTime reason message
V1ReplicaSetSpec replicas selector template minReadySeconds
V1ReplicaSetStatus replicas fullyLabeledReplicas observedGeneration readyReplicas availableReplicas
  conditions terminatingReplicas
V1ReplicationController metadata spec status
V1ReplicationControllerCondition type status lastTransitionTime reason message
V1ReplicationControllerSpec replicas selector template minReadySeconds
V1ReplicationControllerStatus replicas fullyLabeledReplicas observedGeneration readyReplicas
  availableReplicas conditions
V1ResourceAttributes namespace verb group version resource subresource name fieldSelector labelSelector
V1ResourceFieldSelector containerName resource divisor
V1ResourceHealth resourceID health 6:message
V1ResourceQuota metadata spec status
V1ResourceQuotaSpec hard scopes scopeSelector
V1ResourceQuotaStatus hard used
V1ResourceRequirements limits requests claims
V1ResourceRule verbs apiGroups resources resourceNames
V1ResourceStatus name resources
V1Role metadata rules
V1RoleBinding metadata subjects roleRef
V1RoleRef apiGroup kind name
V1RollingUpdateDaemonSet maxUnavailable maxSurge
V1RollingUpdateDeployment maxUnavailable maxSurge
V1RollingUpdateStatefulSetStrategy partition maxUnavailable
V1RuleWithOperations operations *(apiGroups,apiVersions,resources,scope)
V1RuntimeClass metadata handler overhead scheduling
V1SELinuxOptions user role type level
V1Scale metadata spec status
V1ScaleIOPersistentVolumeSource gateway system secretRef sslEnabled protectionDomain storagePool storageMode
  volumeName fsType readOnly
V1ScaleIOVolumeSource gateway system secretRef sslEnabled protectionDomain storagePool storageMode
  volumeName fsType readOnly
V1ScaleSpec replicas
V1ScaleStatus replicas selector
V1Scheduling nodeSelector tolerations
V1ScopeSelector matchExpressions
V1ScopedResourceSelectorRequirement scopeName operator values
V1SeccompProfile type localhostProfile
V1Secret metadata data type stringData immutable
V1SecretEnvSource *(name) optional
V1SecretKeySelector *(name) key optional
V1SecretProjection *(name) items 4:optional
V1SecretReference name namespace
V1SecretVolumeSource secretName items defaultMode optional
V1SecurityContext capabilities privileged seLinuxOptions runAsUser runAsNonRoot readOnlyRootFilesystem
  allowPrivilegeEscalation runAsGroup procMount windowsOptions seccompProfile appArmorProfile
V1SelfSubjectAccessReview metadata spec status
V1SelfSubjectAccessReviewSpec resourceAttributes nonResourceAttributes
V1SelfSubjectReview metadata status
V1SelfSubjectReviewStatus userInfo
V1SelfSubjectRulesReview metadata spec status
V1SelfSubjectRulesReviewSpec namespace
V1Service metadata spec status
V1ServiceAccount metadata secrets imagePullSecrets automountServiceAccountToken
V1ServiceAccountTokenProjection audience expirationSeconds path
V1ServiceBackendPort name number
V1ServicePort name protocol port targetPort nodePort appProtocol
V1ServiceSpec ports selector clusterIP type externalIPs 7:sessionAffinity loadBalancerIP
  loadBalancerSourceRanges externalName externalTrafficPolicy healthCheckNodePort publishNotReadyAddresses
  sessionAffinityConfig 17:ipFamilyPolicy clusterIPs ipFamilies allocateLoadBalancerNodePorts
  loadBalancerClass internalTrafficPolicy trafficDistribution
V1ServiceStatus loadBalancer conditions
V1SessionAffinityConfig clientIP
V1SleepAction seconds
V1StatefulSet metadata spec status
V1StatefulSetCondition type status lastTransitionTime reason message
V1StatefulSetOrdinals start
V1StatefulSetPersistentVolumeClaimRetentionPolicy whenDeleted whenScaled
V1StatefulSetSpec replicas selector template volumeClaimTemplates serviceName podManagementPolicy
  updateStrategy revisionHistoryLimit minReadySeconds persistentVolumeClaimRetentionPolicy ordinals
V1StatefulSetStatus observedGeneration replicas readyReplicas currentReplicas updatedReplicas
  currentRevision updateRevision 9:collisionCount conditions availableReplicas
V1StatefulSetUpdateStrategy type rollingUpdate
V1StorageClass metadata provisioner parameters reclaimPolicy mountOptions allowVolumeExpansion
  volumeBindingMode allowedTopologies
V1StorageOSPersistentVolumeSource volumeName volumeNamespace fsType readOnly secretRef
V1StorageOSVolumeSource volumeName volumeNamespace fsType readOnly secretRef
V1SubjectAccessReview metadata spec status
V1SubjectAccessReviewSpec resourceAttributes nonResourceAttributes user groups extra uid
V1SubjectAccessReviewStatus allowed reason evaluationError denied
V1SubjectRulesReviewStatus resourceRules nonResourceRules incomplete evaluationError
V1SuccessPolicy rules
V1SuccessPolicyRule succeededIndexes succeededCount
V1Sysctl name value
V1TCPSocketAction port host
V1Taint key value effect timeAdded
V1TokenRequestSpec audiences 3:boundObjectRef expirationSeconds
V1TokenRequestStatus token expirationTimestamp
V1TokenReview metadata spec status
V1TokenReviewSpec token audiences
V1TokenReviewStatus authenticated user error audiences
V1Toleration key operator value effect tolerationSeconds
V1TopologySelectorLabelRequirement key values
V1TopologySelectorTerm matchLabelExpressions
V1TopologySpreadConstraint maxSkew topologyKey whenUnsatisfiable labelSelector minDomains nodeAffinityPolicy
  nodeTaintsPolicy matchLabelKeys
V1TypeChecking expressionWarnings
V1TypedLocalObjectReference apiGroup kind name
V1TypedObjectReference apiGroup kind name namespace
V1UncountedTerminatedPods succeeded failed
V1UserInfo username uid groups extra
V1ValidatingWebhook name clientConfig rules failurePolicy namespaceSelector sideEffects timeoutSeconds
  admissionReviewVersions matchPolicy objectSelector matchConditions
V1ValidatingWebhookConfiguration metadata webhooks
V1Validation expression message reason messageExpression
V1Variable name expression
V1Volume name
  *(hostPath,emptyDir,gcePersistentDisk,awsElasticBlockStore,gitRepo,secret,nfs,iscsi,glusterfs,
  persistentVolumeClaim,rbd,flexVolume,cinder,cephfs,flocker,downwardAPI,fc,azureFile,configMap,
  vsphereVolume,quobyte,azureDisk,photonPersistentDisk,portworxVolume,scaleIO,projected,storageos,csi,
  ephemeral,image)
V1VolumeDevice name devicePath
V1VolumeError time message errorCode
V1VolumeMount name readOnly mountPath subPath mountPropagation subPathExpr recursiveReadOnly
V1VolumeMountStatus name mountPath readOnly recursiveReadOnly volumeStatus
V1VolumeNodeAffinity required
V1VolumeNodeResources count
V1VolumeProjection secret downwardAPI configMap serviceAccountToken clusterTrustBundle podCertificate
V1VolumeResourceRequirements limits requests
V1VolumeStatus image
V1VsphereVirtualDiskVolumeSource volumePath fsType storagePolicyName storagePolicyID
V1WeightedPodAffinityTerm weight podAffinityTerm
V1WindowsSecurityContextOptions gmsaCredentialSpecName gmsaCredentialSpec runAsUserName hostProcess
V2ContainerResourceMetricSource name target container
V2ContainerResourceMetricStatus name current container
V2CrossVersionObjectReference kind name apiVersion
V2ExternalMetricSource metric target
V2ExternalMetricStatus metric current
V2HPAScalingPolicy type value periodSeconds
V2HPAScalingRules selectPolicy policies stabilizationWindowSeconds tolerance
V2HorizontalPodAutoscaler metadata spec status
V2HorizontalPodAutoscalerBehavior scaleUp scaleDown
V2HorizontalPodAutoscalerCondition type status lastTransitionTime reason message
V2HorizontalPodAutoscalerSpec scaleTargetRef minReplicas maxReplicas metrics behavior
V2HorizontalPodAutoscalerStatus observedGeneration lastScaleTime currentReplicas desiredReplicas
  currentMetrics conditions
V2MetricIdentifier name selector
V2MetricSpec type object pods resource external 7:containerResource
V2MetricStatus type object pods resource external 7:containerResource
V2MetricTarget type value averageValue averageUtilization
V2MetricValueStatus value averageValue averageUtilization
V2ObjectMetricSource describedObject target metric
V2ObjectMetricStatus metric current describedObject
V2PodsMetricSource metric target
V2PodsMetricStatus metric current
V2ResourceMetricSource name target
V2ResourceMetricStatus name current
"""
