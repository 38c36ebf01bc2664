import { Door } from '../door/door.ts'
import { addControlRoutes } from './control-routes.ts'
import type { Gateway } from './gateway.ts'
import { addModelRoutes } from './model-routes.ts'
import { addOpenEnvRoutes } from './openenv-routes.ts'
import { addRllmRoutes } from './rllm-routes.ts'
import { problemTeller } from './tell-problems.ts'

/** Where a gateway listens. */
export interface GatewayServerOptions {
  /** 0 takes any free one. @default 8700 */
  readonly port?: number
  /** @default '127.0.0.1' */
  readonly host?: string
  /** @default 64 MiB */
  readonly bodyBytes?: number
  readonly allowedHosts?: readonly string[]
}

/** A gateway that listens; disposing of it takes no more requests and closes its connections. */
export interface GatewayServer extends AsyncDisposable {
  readonly url: string
}

/** Serves a gateway over HTTP. */
export async function serveGateway(
  gateway: Gateway,
  options: GatewayServerOptions = {},
): Promise<GatewayServer> {
  const { port = 8700, host = '127.0.0.1', bodyBytes, allowedHosts } = options
  const { control } = gateway.secrets
  const door = new Door({
    host,
    tell: problemTeller('words'),
    ...(control !== undefined && { token: control }),
    ...(bodyBytes !== undefined && { bodyBytes }),
    ...(allowedHosts && { allowedHosts }),
  })
  addModelRoutes(door, gateway)
  addControlRoutes(door, gateway)
  addRllmRoutes(door, gateway)
  addOpenEnvRoutes(door, gateway)
  return { url: await door.listen(port), [Symbol.asyncDispose]: () => door.close() }
}
