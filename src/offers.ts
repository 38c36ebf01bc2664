// What the floors above `run` offer it by name. Every process and thread that rolls imports this file first;
// each part is loaded when it is named.
import { offer } from './run/settings/offered.ts'

async function simulatedUsers() {
  return (await import('./worlds/simulated-users/services.ts')).tauServices()
}

offer({
  environments: {
    chart: async () => (await import('./worlds/pictures/factory.ts')).chartFactory,
    harbor: async () => (await import('./worlds/harbor/factory.ts')).harborFactory,
    harness: async () =>
      (await import('./worlds/harnesses/factory.ts')).harnessFactory(
        text => void process.stderr.write(`${text}\n`),
      ),
    interpreter: async () => (await import('./worlds/interpreter/factory.ts')).interpreterFactory,
    maze: async () => (await import('./worlds/pictures/factory.ts')).mazeFactory,
    openenv: async () =>
      (await import('./worlds/openenv/openenv.ts')).openEnvFactory(
        text => void process.stderr.write(`${text}\n`),
      ),
    python: async () => (await import('./worlds/python-bridge/python.ts')).pythonFactory,
    repair: async () => (await import('./worlds/repair/factory.ts')).repairFactory,
    tau: async () => (await import('./worlds/tau/factory.ts')).tauFactory(await simulatedUsers()),
    tau2: async () =>
      (await import('./worlds/tau2/factory.ts')).tau2Factory(await simulatedUsers()),
    web: async () => (await import('./worlds/web/factory.ts')).webFactory,
  },
  schemes: {
    embedded: {
      leadsTo: 'weights inside',
      async open(place, { weights }) {
        const { openEmbedded } = await import('./learn/model/embedded.ts')
        const open = async (folder: string | undefined) => {
          const { device, tell } = weights ?? {}
          const policy = await openEmbedded(folder, device && { device })
          if (device !== undefined && device !== 'cpu') tell?.(`device  ${policy.model.device}`)
          return policy
        }
        if (!place.startsWith('hf:')) return await open(place === '' ? undefined : place)
        const { findHubWeights } = await import('./run/settings/hub/find-weights.ts')
        return await open(await findHubWeights(place.slice('hf:'.length), weights))
      },
    },
  },
  benchmarks: {
    tau: async () => (await import('./worlds/tau/benchmark.ts')).tauBenchmark,
    tau2: async () => (await import('./worlds/tau2/benchmark.ts')).tau2Benchmark,
  },
  modules: {
    espalier: () => import('./index.ts'),
    'espalier/environments': () => import('./environments.ts'),
    'espalier/math': () => import('./base/math/index.ts'),
    'espalier/policies': () => import('./policies.ts'),
    'espalier/rewards': () => import('./rewards.ts'),
    'espalier/store': () => import('./store.ts'),
    'espalier/testing': () => import('./testing.ts'),
    'espalier/tokens': () => import('./tokens.ts'),
  },
  openModelDoor: async () => (await import('./doors/gateway/model-door.ts')).openModelDoor,
  harnesses: ['acp', 'claude-code', 'codex', 'mini-swe-agent', 'opencode'],
  taskFolders: {
    harbor: async () => (await import('./worlds/harbor/task-folder.ts')).countTaskFolders,
  },
  serveMetrics: async () => (await import('./doors/door/serve-metrics.ts')).serveMetrics,
})
