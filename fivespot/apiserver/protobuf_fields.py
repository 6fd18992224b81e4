"""The messages of Kubernetes' protobuf encoding, for the kinds that are served.

One message a paragraph: its name, then ``NUMBER:NAME:TYPE`` for each field. NAME is the one in JSON, and empty for
the members of a Go struct that is inlined there. Before the type, ``*`` marks a pointer (a zero value is kept), ``!`` a
value that JSON always shows, ``+`` a list and ``%`` a map. A type is another message or one of those that
:mod:`fivespot.apiserver.protobuf` reads itself. The numbers are those of ``k8s.io/api`` 0.37.
"""

from __future__ import annotations

from typing import Final

__all__ = ["MESSAGES"]

MESSAGES: Final = """
AWSElasticBlockStoreVolumeSource 1:volumeID:!text 2:fsType:text 3:partition:int 4:readOnly:flag
Affinity 1:nodeAffinity:*NodeAffinity 2:podAffinity:*PodAffinity 3:podAntiAffinity:*PodAntiAffinity
AppArmorProfile 1:type:!text 2:localhostProfile:*text
AttachedVolume 1:name:!text 2:devicePath:!text
AzureDiskVolumeSource 1:diskName:!text 2:diskURI:!text 3:cachingMode:*text 4:fsType:*text 5:readOnly:*flag
  6:kind:*text
AzureFileVolumeSource 1:secretName:!text 2:shareName:!text 3:readOnly:flag
Binding 1:metadata:ObjectMeta 2:target:ObjectReference
BoundObjectReference 1:kind:text 2:apiVersion:text 3:name:text 4:uid:text
CSIVolumeSource 1:driver:!text 2:readOnly:*flag 3:fsType:*text 4:volumeAttributes:%text
  5:nodePublishSecretRef:*LocalObjectReference
Capabilities 1:add:+text 2:drop:+text
CephFSVolumeSource 1:monitors:+text 2:path:text 3:user:text 4:secretFile:text 5:secretRef:*LocalObjectReference
  6:readOnly:flag
CertificateSigningRequest 1:metadata:ObjectMeta 2:spec:CertificateSigningRequestSpec
  3:status:CertificateSigningRequestStatus
CertificateSigningRequestCondition 1:type:!text 6:status:!text 2:reason:text 3:message:text 4:lastUpdateTime:time
  5:lastTransitionTime:time
CertificateSigningRequestSpec 1:request:bytes 7:signerName:!text 8:expirationSeconds:*int 5:usages:+text
  2:username:text 3:uid:text 4:groups:+text 6:extra:%texts
CertificateSigningRequestStatus 1:conditions:+CertificateSigningRequestCondition 2:certificate:bytes
CinderVolumeSource 1:volumeID:!text 2:fsType:text 3:readOnly:flag 4:secretRef:*LocalObjectReference
ClientIPConfig 1:timeoutSeconds:*int
ClusterTrustBundleProjection 1:name:*text 2:signerName:*text 3:labelSelector:*LabelSelector 5:optional:*flag
  4:path:!text 6:user:*int
Condition 1:type:!text 2:status:!text 3:observedGeneration:int 4:lastTransitionTime:time 5:reason:!text
  6:message:!text
ConfigMap 1:metadata:ObjectMeta 4:immutable:*flag 2:data:%text 3:binaryData:%bytes
ConfigMapEnvSource 1::LocalObjectReference 2:optional:*flag
ConfigMapKeySelector 1::LocalObjectReference 2:key:!text 3:optional:*flag
ConfigMapNodeConfigSource 1:namespace:!text 2:name:!text 3:uid:text 4:resourceVersion:text 5:kubeletConfigKey:!text
ConfigMapProjection 1::LocalObjectReference 2:items:+KeyToPath 4:optional:*flag
ConfigMapVolumeSource 1::LocalObjectReference 2:items:+KeyToPath 3:defaultMode:*int 4:optional:*flag
  5:defaultUser:*int
Container 1:name:!text 2:image:text 3:command:+text 4:args:+text 5:workingDir:text 6:ports:+ContainerPort
  19:envFrom:+EnvFromSource 7:env:+EnvVar 8:resources:ResourceRequirements 23:resizePolicy:+ContainerResizePolicy
  24:restartPolicy:*text 25:restartPolicyRules:+ContainerRestartRule 9:volumeMounts:+VolumeMount
  21:volumeDevices:+VolumeDevice 10:livenessProbe:*Probe 11:readinessProbe:*Probe 22:startupProbe:*Probe
  12:lifecycle:*Lifecycle 13:terminationMessagePath:text 20:terminationMessagePolicy:text 14:imagePullPolicy:text
  15:securityContext:*SecurityContext 16:stdin:flag 17:stdinOnce:flag 18:tty:flag
ContainerExtendedResourceRequest 1:containerName:!text 2:resourceName:!text 3:requestName:!text
ContainerImage 1:names:+text 2:sizeBytes:int
ContainerPort 1:name:text 2:hostPort:int 3:containerPort:!int 4:protocol:text 5:hostIP:text
ContainerResizePolicy 1:resourceName:!text 2:restartPolicy:!text
ContainerRestartRule 1:action:text 2:exitCodes:*ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes 1:operator:text 2:values:+int
ContainerState 1:waiting:*ContainerStateWaiting 2:running:*ContainerStateRunning
  3:terminated:*ContainerStateTerminated
ContainerStateRunning 1:startedAt:time
ContainerStateTerminated 1:exitCode:!int 2:signal:int 3:reason:text 4:message:text 5:startedAt:time 6:finishedAt:time
  7:containerID:text
ContainerStateWaiting 1:reason:text 2:message:text
ContainerStatus 1:name:!text 2:state:ContainerState 3:lastState:ContainerState 4:ready:!flag 5:restartCount:!int
  6:image:!text 7:imageID:!text 8:containerID:text 9:started:*flag 10:allocatedResources:%quantity
  11:resources:*ResourceRequirements 12:volumeMounts:+VolumeMountStatus 13:user:*ContainerUser
  14:allocatedResourcesStatus:+ResourceStatus 15:stopSignal:*text
ContainerUser 1:linux:*LinuxContainerUser
DaemonEndpoint 1:Port:!int
DeleteOptions 1:gracePeriodSeconds:*int 2:preconditions:*Preconditions 3:orphanDependents:*flag
  4:propagationPolicy:*text 5:dryRun:+text 6:ignoreStoreReadErrorWithClusterBreakingPotential:*flag
Deployment 1:metadata:ObjectMeta 2:spec:DeploymentSpec 3:status:DeploymentStatus
DeploymentCondition 1:type:!text 2:status:!text 6:lastUpdateTime:time 7:lastTransitionTime:time 4:reason:text
  5:message:text
DeploymentSpec 1:replicas:*int 2:selector:*LabelSelector 3:template:PodTemplateSpec 4:strategy:DeploymentStrategy
  5:minReadySeconds:int 6:revisionHistoryLimit:*int 7:paused:flag 9:progressDeadlineSeconds:*int
DeploymentStatus 1:observedGeneration:int 2:replicas:int 3:updatedReplicas:int 7:readyReplicas:int
  4:availableReplicas:int 5:unavailableReplicas:int 9:terminatingReplicas:*int 6:conditions:+DeploymentCondition
  8:collisionCount:*int
DeploymentStrategy 1:type:text 2:rollingUpdate:*RollingUpdateDeployment
DownwardAPIProjection 1:items:+DownwardAPIVolumeFile
DownwardAPIVolumeFile 1:path:!text 2:fieldRef:*ObjectFieldSelector 3:resourceFieldRef:*ResourceFieldSelector
  4:mode:*int 5:user:*int
DownwardAPIVolumeSource 1:items:+DownwardAPIVolumeFile 2:defaultMode:*int 3:defaultUser:*int
EmptyDirVolumeSource 1:medium:text 2:sizeLimit:*quantity 3:mode:*int
EnvFromSource 1:prefix:text 2:configMapRef:*ConfigMapEnvSource 3:secretRef:*SecretEnvSource
EnvVar 1:name:!text 2:value:text 3:valueFrom:*EnvVarSource
EnvVarSource 1:fieldRef:*ObjectFieldSelector 2:resourceFieldRef:*ResourceFieldSelector
  3:configMapKeyRef:*ConfigMapKeySelector 4:secretKeyRef:*SecretKeySelector 5:fileKeyRef:*FileKeySelector
EphemeralContainer 1::EphemeralContainerCommon 2:targetContainerName:text
EphemeralContainerCommon 1:name:!text 2:image:text 3:command:+text 4:args:+text 5:workingDir:text
  6:ports:+ContainerPort 19:envFrom:+EnvFromSource 7:env:+EnvVar 8:resources:ResourceRequirements
  23:resizePolicy:+ContainerResizePolicy 24:restartPolicy:*text 25:restartPolicyRules:+ContainerRestartRule
  9:volumeMounts:+VolumeMount 21:volumeDevices:+VolumeDevice 10:livenessProbe:*Probe 11:readinessProbe:*Probe
  22:startupProbe:*Probe 12:lifecycle:*Lifecycle 13:terminationMessagePath:text 20:terminationMessagePolicy:text
  14:imagePullPolicy:text 15:securityContext:*SecurityContext 16:stdin:flag 17:stdinOnce:flag 18:tty:flag
EphemeralVolumeSource 1:volumeClaimTemplate:*PersistentVolumeClaimTemplate
Event 1:metadata:ObjectMeta 2:involvedObject:ObjectReference 3:reason:text 4:message:text 5:source:EventSource
  6:firstTimestamp:time 7:lastTimestamp:time 8:count:int 9:type:text 10:eventTime:micro 11:series:*EventSeries
  12:action:text 13:related:*ObjectReference 14:reportingComponent:!text 15:reportingInstance:!text
EventSeries 1:count:int 2:lastObservedTime:micro
EventSource 1:component:text 2:host:text
EventsEvent 1:metadata:ObjectMeta 2:eventTime:micro 3:series:*EventsEventSeries 4:reportingController:text
  5:reportingInstance:text 6:action:text 7:reason:text 8:regarding:ObjectReference 9:related:*ObjectReference
  10:note:text 11:type:text 12:deprecatedSource:EventSource 13:deprecatedFirstTimestamp:time
  14:deprecatedLastTimestamp:time 15:deprecatedCount:int
EventsEventSeries 1:count:!int 2:lastObservedTime:micro
Eviction 1:metadata:ObjectMeta 2:deleteOptions:*DeleteOptions
EvictionResponder 1:name:!text 2:priority:*int
ExecAction 1:command:+text
FCVolumeSource 1:targetWWNs:+text 2:lun:*int 3:fsType:text 4:readOnly:flag 5:wwids:+text
FileKeySelector 1:volumeName:!text 2:path:!text 3:key:!text 4:optional:*flag
FlexVolumeSource 1:driver:!text 2:fsType:text 3:secretRef:*LocalObjectReference 4:readOnly:flag 5:options:%text
FlockerVolumeSource 1:datasetName:text 2:datasetUUID:text
GCEPersistentDiskVolumeSource 1:pdName:!text 2:fsType:text 3:partition:int 4:readOnly:flag
GRPCAction 1:port:!int 2:service:*text 3:mode:*text
GitRepoVolumeSource 1:repository:!text 2:revision:text 3:directory:text
GlusterfsVolumeSource 1:endpoints:!text 2:path:!text 3:readOnly:flag
HTTPGetAction 1:path:text 2:port:choice 3:host:text 4:scheme:text 5:httpHeaders:+HTTPHeader 6:protocol:*text
HTTPHeader 1:name:!text 2:value:!text
HostAlias 1:ip:!text 2:hostnames:+text
HostIP 1:ip:!text
HostPathVolumeSource 1:path:!text 2:type:*text
ISCSIVolumeSource 1:targetPortal:!text 2:iqn:!text 3:lun:!int 4:iscsiInterface:text 5:fsType:text 6:readOnly:flag
  7:portals:+text 8:chapAuthDiscovery:flag 11:chapAuthSession:flag 10:secretRef:*LocalObjectReference
  12:initiatorName:*text
ImageVolumeSource 1:reference:text 2:pullPolicy:text
ImageVolumeStatus 1:imageRef:text
KeyToPath 1:key:!text 2:path:!text 3:mode:*int 4:user:*int
LabelSelector 1:matchLabels:%text 2:matchExpressions:+LabelSelectorRequirement
LabelSelectorRequirement 1:key:!text 2:operator:!text 3:values:+text
Lease 1:metadata:ObjectMeta 2:spec:LeaseSpec
LeaseSpec 1:holderIdentity:*text 2:leaseDurationSeconds:*int 3:acquireTime:*micro 4:renewTime:*micro
  5:leaseTransitions:*int 6:strategy:*text 7:preferredHolder:*text
Lifecycle 1:postStart:*LifecycleHandler 2:preStop:*LifecycleHandler 3:stopSignal:*text
LifecycleHandler 1:exec:*ExecAction 2:httpGet:*HTTPGetAction 3:tcpSocket:*TCPSocketAction 4:sleep:*SleepAction
LinuxContainerUser 1:uid:!int 2:gid:!int 3:supplementalGroups:+int
LoadBalancerIngress 1:ip:text 2:hostname:text 3:ipMode:*text 4:ports:+PortStatus
LoadBalancerStatus 1:ingress:+LoadBalancerIngress
LocalObjectReference 1:name:text
ManagedFieldsEntry 1:manager:text 2:operation:text 3:apiVersion:text 4:time:*time 6:fieldsType:text 7:fieldsV1:*json
  8:subresource:text
NFSVolumeSource 1:server:!text 2:path:!text 3:readOnly:flag
Namespace 1:metadata:ObjectMeta 2:spec:NamespaceSpec 3:status:NamespaceStatus
NamespaceCondition 1:type:!text 2:status:!text 4:lastTransitionTime:time 5:reason:text 6:message:text
NamespaceSpec 1:finalizers:+text
NamespaceStatus 1:phase:text 2:conditions:+NamespaceCondition
Node 1:metadata:ObjectMeta 2:spec:NodeSpec 3:status:NodeStatus
NodeAddress 1:type:!text 2:address:!text
NodeAffinity 1:requiredDuringSchedulingIgnoredDuringExecution:*NodeSelector
  2:preferredDuringSchedulingIgnoredDuringExecution:+PreferredSchedulingTerm
NodeAllocatableMappedResources 1:name:!text 2:quantity:*quantity
NodeAllocatableOverheadResources 1:name:!text 2:perPod:*quantity 3:perContainer:*quantity
NodeAllocatableResourceClaimStatus 1:resourceClaimName:!text 2:containers:+text
  4:mapping:+NodeAllocatableMappedResources 5:overhead:+NodeAllocatableOverheadResources
NodeCondition 1:type:!text 2:status:!text 3:lastHeartbeatTime:time 4:lastTransitionTime:time 5:reason:text
  6:message:text
NodeConfigSource 2:configMap:*ConfigMapNodeConfigSource
NodeConfigStatus 1:assigned:*NodeConfigSource 2:active:*NodeConfigSource 3:lastKnownGood:*NodeConfigSource
  4:error:text
NodeDaemonEndpoints 1:kubeletEndpoint:DaemonEndpoint
NodeFeatures 1:supplementalGroupsPolicy:*flag
NodePodPreemptionPolicy 1:disableResizePreemption:+text
NodeRuntimeHandler 1:name:!text 2:features:*NodeRuntimeHandlerFeatures
NodeRuntimeHandlerFeatures 1:recursiveReadOnlyMounts:*flag 2:userNamespaces:*flag
NodeSelector 1:nodeSelectorTerms:+NodeSelectorTerm
NodeSelectorRequirement 1:key:!text 2:operator:!text 3:values:+text
NodeSelectorTerm 1:matchExpressions:+NodeSelectorRequirement 2:matchFields:+NodeSelectorRequirement
NodeSpec 1:podCIDR:text 7:podCIDRs:+text 3:providerID:text 4:unschedulable:flag 5:taints:+Taint
  6:configSource:*NodeConfigSource 2:externalID:text 8:podPreemptionPolicy:*NodePodPreemptionPolicy
NodeStatus 1:capacity:%quantity 2:allocatable:%quantity 3:phase:text 4:conditions:+NodeCondition
  5:addresses:+NodeAddress 6:daemonEndpoints:NodeDaemonEndpoints 7:nodeInfo:NodeSystemInfo 8:images:+ContainerImage
  9:volumesInUse:+text 10:volumesAttached:+AttachedVolume 11:config:*NodeConfigStatus
  12:runtimeHandlers:+NodeRuntimeHandler 13:features:*NodeFeatures 14:declaredFeatures:+text
NodeSwapStatus 1:capacity:*int
NodeSystemInfo 1:machineID:!text 2:systemUUID:!text 3:bootID:!text 4:kernelVersion:!text 5:osImage:!text
  6:containerRuntimeVersion:!text 7:kubeletVersion:!text 8:kubeProxyVersion:!text 9:operatingSystem:!text
  10:architecture:!text 11:swap:*NodeSwapStatus 12:runningInUserNamespace:*flag
ObjectFieldSelector 1:apiVersion:text 2:fieldPath:!text
ObjectMeta 1:name:text 2:generateName:text 3:namespace:text 4:selfLink:text 5:uid:text 6:resourceVersion:text
  7:generation:int 8:creationTimestamp:time 9:deletionTimestamp:*time 10:deletionGracePeriodSeconds:*int
  11:labels:%text 12:annotations:%text 13:ownerReferences:+OwnerReference 14:finalizers:+text
  17:managedFields:+ManagedFieldsEntry
ObjectReference 1:kind:text 2:namespace:text 3:name:text 4:uid:text 5:apiVersion:text 6:resourceVersion:text
  7:fieldPath:text
OwnerReference 5:apiVersion:!text 1:kind:!text 3:name:!text 4:uid:!text 6:controller:*flag 7:blockOwnerDeletion:*flag
PersistentVolumeClaimSpec 1:accessModes:+text 4:selector:*LabelSelector 2:resources:VolumeResourceRequirements
  3:volumeName:text 5:storageClassName:*text 6:volumeMode:*text 7:dataSource:*TypedLocalObjectReference
  8:dataSourceRef:*TypedObjectReference 9:volumeAttributesClassName:*text
PersistentVolumeClaimTemplate 1:metadata:ObjectMeta 2:spec:PersistentVolumeClaimSpec
PersistentVolumeClaimVolumeSource 1:claimName:!text 2:readOnly:flag
PhotonPersistentDiskVolumeSource 1:pdID:!text 2:fsType:text
Pod 1:metadata:ObjectMeta 2:spec:PodSpec 3:status:PodStatus
PodAffinity 1:requiredDuringSchedulingIgnoredDuringExecution:+PodAffinityTerm
  2:preferredDuringSchedulingIgnoredDuringExecution:+WeightedPodAffinityTerm
PodAffinityTerm 1:labelSelector:*LabelSelector 2:namespaces:+text 3:topologyKey:!text
  4:namespaceSelector:*LabelSelector 5:matchLabelKeys:+text 6:mismatchLabelKeys:+text
PodAntiAffinity 1:requiredDuringSchedulingIgnoredDuringExecution:+PodAffinityTerm
  2:preferredDuringSchedulingIgnoredDuringExecution:+WeightedPodAffinityTerm
PodCertificateProjection 1:signerName:text 2:keyType:text 3:maxExpirationSeconds:*int 4:credentialBundlePath:text
  5:keyPath:text 6:certificateChainPath:text 7:userAnnotations:%text 8:user:*int
PodCondition 1:type:!text 7:observedGeneration:int 2:status:!text 3:lastProbeTime:time 4:lastTransitionTime:time
  5:reason:text 6:message:text
PodDNSConfig 1:nameservers:+text 2:searches:+text 3:options:+PodDNSConfigOption
PodDNSConfigOption 1:name:text 2:value:*text
PodDisruptionBudget 1:metadata:ObjectMeta 2:spec:PodDisruptionBudgetSpec 3:status:PodDisruptionBudgetStatus
PodDisruptionBudgetSpec 1:minAvailable:*choice 2:selector:*LabelSelector 3:maxUnavailable:*choice
  4:unhealthyPodEvictionPolicy:*text
PodDisruptionBudgetStatus 1:observedGeneration:int 2:disruptedPods:%time 3:disruptionsAllowed:!int
  4:currentHealthy:!int 5:desiredHealthy:!int 6:expectedPods:!int 7:conditions:+Condition
PodExtendedResourceClaimStatus 1:requestMappings:+ContainerExtendedResourceRequest 2:resourceClaimName:!text
PodIP 1:ip:!text
PodOS 1:name:!text
PodReadinessGate 1:conditionType:!text
PodResourceClaim 1:name:!text 3:resourceClaimName:*text 4:resourceClaimTemplateName:*text
PodResourceClaimStatus 1:name:!text 2:resourceClaimName:*text
PodSchedulingGate 1:name:!text
PodSchedulingGroup 1:podGroupName:*text
PodSecurityContext 1:seLinuxOptions:*SELinuxOptions 8:windowsOptions:*WindowsSecurityContextOptions 2:runAsUser:*int
  6:runAsGroup:*int 3:runAsNonRoot:*flag 4:supplementalGroups:+int 12:supplementalGroupsPolicy:*text 5:fsGroup:*int
  7:sysctls:+Sysctl 9:fsGroupChangePolicy:*text 10:seccompProfile:*SeccompProfile 11:appArmorProfile:*AppArmorProfile
  13:seLinuxChangePolicy:*text
PodSpec 1:volumes:+Volume 20:initContainers:+Container 2:containers:+Container
  34:ephemeralContainers:+EphemeralContainer 3:restartPolicy:text 4:terminationGracePeriodSeconds:*int
  5:activeDeadlineSeconds:*int 6:dnsPolicy:text 7:nodeSelector:%text 8:serviceAccountName:text 9:serviceAccount:text
  21:automountServiceAccountToken:*flag 10:nodeName:text 11:hostNetwork:flag 12:hostPID:flag 13:hostIPC:flag
  27:shareProcessNamespace:*flag 14:securityContext:*PodSecurityContext 15:imagePullSecrets:+LocalObjectReference
  16:hostname:text 17:subdomain:text 18:affinity:*Affinity 19:schedulerName:text 22:tolerations:+Toleration
  23:hostAliases:+HostAlias 24:priorityClassName:text 25:priority:*int 26:dnsConfig:*PodDNSConfig
  28:readinessGates:+PodReadinessGate 29:runtimeClassName:*text 30:enableServiceLinks:*flag 31:preemptionPolicy:*text
  32:overhead:%quantity 33:topologySpreadConstraints:+TopologySpreadConstraint 35:setHostnameAsFQDN:*flag 36:os:*PodOS
  37:hostUsers:*flag 38:schedulingGates:+PodSchedulingGate 39:resourceClaims:+PodResourceClaim
  40:resources:*ResourceRequirements 41:hostnameOverride:*text 43:schedulingGroup:*PodSchedulingGroup
  44:evictionResponders:+EvictionResponder
PodStatus 17:observedGeneration:int 1:phase:text 2:conditions:+PodCondition 3:message:text 4:reason:text
  11:nominatedNodeName:text 5:hostIP:text 16:hostIPs:+HostIP 6:podIP:text 12:podIPs:+PodIP 7:startTime:*time
  10:initContainerStatuses:+ContainerStatus 8:containerStatuses:+ContainerStatus 9:qosClass:text
  13:ephemeralContainerStatuses:+ContainerStatus 14:resize:text 15:resourceClaimStatuses:+PodResourceClaimStatus
  18:extendedResourceClaimStatus:*PodExtendedResourceClaimStatus 19:allocatedResources:%quantity
  20:resources:*ResourceRequirements 21:nodeAllocatableResourceClaimStatuses:+NodeAllocatableResourceClaimStatus
  22:volumeHealth:+PodVolumeHealth
PodTemplateSpec 1:metadata:ObjectMeta 2:spec:PodSpec
PodVolumeHealth 1:name:!text 2:healthConditions:+VolumeHealthCondition 3:lastTransitionTime:time
PortStatus 1:port:!int 2:protocol:!text 3:error:*text
PortworxVolumeSource 1:volumeID:!text 2:fsType:text 3:readOnly:flag
Preconditions 1:uid:*text 2:resourceVersion:*text
PreferredSchedulingTerm 1:weight:!int 2:preference:NodeSelectorTerm
Probe 1::ProbeHandler 2:initialDelaySeconds:int 3:timeoutSeconds:int 4:periodSeconds:int 5:successThreshold:int
  6:failureThreshold:int 7:terminationGracePeriodSeconds:*int
ProbeHandler 1:exec:*ExecAction 2:httpGet:*HTTPGetAction 3:tcpSocket:*TCPSocketAction 4:grpc:*GRPCAction
ProjectedVolumeSource 1:sources:+VolumeProjection 2:defaultMode:*int 3:defaultUser:*int
QuobyteVolumeSource 1:registry:!text 2:volume:!text 3:readOnly:flag 4:user:text 5:group:text 6:tenant:text
RBDVolumeSource 1:monitors:+text 2:image:!text 3:fsType:text 4:pool:text 5:user:text 6:keyring:text
  7:secretRef:*LocalObjectReference 8:readOnly:flag
ReplicaSet 1:metadata:ObjectMeta 2:spec:ReplicaSetSpec 3:status:ReplicaSetStatus
ReplicaSetCondition 1:type:!text 2:status:!text 3:lastTransitionTime:time 4:reason:text 5:message:text
ReplicaSetSpec 1:replicas:*int 4:minReadySeconds:int 2:selector:*LabelSelector 3:template:PodTemplateSpec
ReplicaSetStatus 1:replicas:!int 2:fullyLabeledReplicas:int 4:readyReplicas:int 5:availableReplicas:int
  7:terminatingReplicas:*int 3:observedGeneration:int 6:conditions:+ReplicaSetCondition
ResourceClaim 1:name:!text 2:request:text
ResourceFieldSelector 1:containerName:text 2:resource:!text 3:divisor:quantity
ResourceHealth 1:resourceID:!text 2:health:text 6:message:*text
ResourceRequirements 1:limits:%quantity 2:requests:%quantity 3:claims:+ResourceClaim
ResourceStatus 1:name:!text 2:resources:+ResourceHealth
RollingUpdateDeployment 1:maxUnavailable:*choice 2:maxSurge:*choice
SELinuxOptions 1:user:text 2:role:text 3:type:text 4:level:text
Scale 1:metadata:ObjectMeta 2:spec:ScaleSpec 3:status:ScaleStatus
ScaleIOVolumeSource 1:gateway:!text 2:system:!text 3:secretRef:*LocalObjectReference 4:sslEnabled:flag
  5:protectionDomain:text 6:storagePool:text 7:storageMode:text 8:volumeName:text 9:fsType:text 10:readOnly:flag
ScaleSpec 1:replicas:int
ScaleStatus 1:replicas:!int 2:selector:text
SeccompProfile 1:type:!text 2:localhostProfile:*text
Secret 1:metadata:ObjectMeta 5:immutable:*flag 2:data:%bytes 4:stringData:%text 3:type:text
SecretEnvSource 1::LocalObjectReference 2:optional:*flag
SecretKeySelector 1::LocalObjectReference 2:key:!text 3:optional:*flag
SecretProjection 1::LocalObjectReference 2:items:+KeyToPath 4:optional:*flag
SecretVolumeSource 1:secretName:text 2:items:+KeyToPath 3:defaultMode:*int 4:optional:*flag 5:defaultUser:*int
SecurityContext 1:capabilities:*Capabilities 2:privileged:*flag 3:seLinuxOptions:*SELinuxOptions
  10:windowsOptions:*WindowsSecurityContextOptions 4:runAsUser:*int 8:runAsGroup:*int 5:runAsNonRoot:*flag
  6:readOnlyRootFilesystem:*flag 7:allowPrivilegeEscalation:*flag 9:procMount:*text 11:seccompProfile:*SeccompProfile
  12:appArmorProfile:*AppArmorProfile
Service 1:metadata:ObjectMeta 2:spec:ServiceSpec 3:status:ServiceStatus
ServiceAccount 1:metadata:ObjectMeta 2:secrets:+ObjectReference 3:imagePullSecrets:+LocalObjectReference
  4:automountServiceAccountToken:*flag
ServiceAccountTokenProjection 1:audience:text 2:expirationSeconds:*int 3:path:!text 4:user:*int
ServicePort 1:name:text 2:protocol:text 6:appProtocol:*text 3:port:!int 4:targetPort:choice 5:nodePort:int
ServiceSpec 1:ports:+ServicePort 2:selector:%text 3:clusterIP:text 18:clusterIPs:+text 4:type:text 5:externalIPs:+text
  7:sessionAffinity:text 8:loadBalancerIP:text 9:loadBalancerSourceRanges:+text 10:externalName:text
  11:externalTrafficPolicy:text 12:healthCheckNodePort:int 13:publishNotReadyAddresses:flag
  14:sessionAffinityConfig:*SessionAffinityConfig 19:ipFamilies:+text 17:ipFamilyPolicy:*text
  20:allocateLoadBalancerNodePorts:*flag 21:loadBalancerClass:*text 22:internalTrafficPolicy:*text
  23:trafficDistribution:*text
ServiceStatus 1:loadBalancer:LoadBalancerStatus 2:conditions:+Condition
SessionAffinityConfig 1:clientIP:*ClientIPConfig
SleepAction 1:seconds:!int
StorageOSVolumeSource 1:volumeName:text 2:volumeNamespace:text 3:fsType:text 4:readOnly:flag
  5:secretRef:*LocalObjectReference
Sysctl 1:name:!text 2:value:!text
TCPSocketAction 1:port:choice 2:host:text
Taint 1:key:!text 2:value:text 3:effect:!text 4:timeAdded:*time
TokenRequest 1:metadata:ObjectMeta 2:spec:TokenRequestSpec 3:status:TokenRequestStatus
TokenRequestSpec 1:audiences:+text 4:expirationSeconds:*int 3:boundObjectRef:*BoundObjectReference
  5:attestations:%texts
TokenRequestStatus 1:token:!text 2:expirationTimestamp:time
Toleration 1:key:text 2:operator:text 3:value:text 4:effect:text 5:tolerationSeconds:*int
TopologySpreadConstraint 1:maxSkew:!int 2:topologyKey:!text 3:whenUnsatisfiable:!text 4:labelSelector:*LabelSelector
  5:minDomains:*int 6:nodeAffinityPolicy:*text 7:nodeTaintsPolicy:*text 8:matchLabelKeys:+text
TypedLocalObjectReference 1:apiGroup:*text 2:kind:!text 3:name:!text
TypedObjectReference 1:apiGroup:*text 2:kind:!text 3:name:!text 4:namespace:*text
Volume 1:name:!text 2::VolumeSource
VolumeDevice 1:name:!text 2:devicePath:!text
VolumeHealthCondition 1:status:!text 2:reason:!text 3:message:text
VolumeMount 1:name:!text 2:readOnly:flag 7:recursiveReadOnly:*text 3:mountPath:!text 4:subPath:text
  5:mountPropagation:*text 6:subPathExpr:text 8:bindMountOptions:+text
VolumeMountStatus 1:name:!text 2:mountPath:!text 3:readOnly:flag 4:recursiveReadOnly:*text
  5:volumeStatus:*VolumeStatus
VolumeProjection 1:secret:*SecretProjection 2:downwardAPI:*DownwardAPIProjection 3:configMap:*ConfigMapProjection
  4:serviceAccountToken:*ServiceAccountTokenProjection 5:clusterTrustBundle:*ClusterTrustBundleProjection
  6:podCertificate:*PodCertificateProjection
VolumeResourceRequirements 1:limits:%quantity 2:requests:%quantity
VolumeSource 1:hostPath:*HostPathVolumeSource 2:emptyDir:*EmptyDirVolumeSource
  3:gcePersistentDisk:*GCEPersistentDiskVolumeSource 4:awsElasticBlockStore:*AWSElasticBlockStoreVolumeSource
  5:gitRepo:*GitRepoVolumeSource 6:secret:*SecretVolumeSource 7:nfs:*NFSVolumeSource 8:iscsi:*ISCSIVolumeSource
  9:glusterfs:*GlusterfsVolumeSource 10:persistentVolumeClaim:*PersistentVolumeClaimVolumeSource
  11:rbd:*RBDVolumeSource 12:flexVolume:*FlexVolumeSource 13:cinder:*CinderVolumeSource 14:cephfs:*CephFSVolumeSource
  15:flocker:*FlockerVolumeSource 16:downwardAPI:*DownwardAPIVolumeSource 17:fc:*FCVolumeSource
  18:azureFile:*AzureFileVolumeSource 19:configMap:*ConfigMapVolumeSource
  20:vsphereVolume:*VsphereVirtualDiskVolumeSource 21:quobyte:*QuobyteVolumeSource 22:azureDisk:*AzureDiskVolumeSource
  23:photonPersistentDisk:*PhotonPersistentDiskVolumeSource 26:projected:*ProjectedVolumeSource
  24:portworxVolume:*PortworxVolumeSource 25:scaleIO:*ScaleIOVolumeSource 27:storageos:*StorageOSVolumeSource
  28:csi:*CSIVolumeSource 29:ephemeral:*EphemeralVolumeSource 30:image:*ImageVolumeSource
VolumeStatus 1:image:*ImageVolumeStatus
VsphereVirtualDiskVolumeSource 1:volumePath:!text 2:fsType:text 3:storagePolicyName:text 4:storagePolicyID:text
WeightedPodAffinityTerm 1:weight:!int 2:podAffinityTerm:PodAffinityTerm
WindowsSecurityContextOptions 1:gmsaCredentialSpecName:*text 2:gmsaCredentialSpec:*text 3:runAsUserName:*text
  4:hostProcess:*flag
"""
