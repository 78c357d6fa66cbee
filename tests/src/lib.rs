//! What a kernel test may rely on: guards for cgroups and namespaces, a scripted server, the agent.
