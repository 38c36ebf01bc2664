import { randomUUID } from 'node:crypto'
import type { Daytona, Sandbox } from '@daytona/sdk'
import { missingPackage } from '../../../base/core/names/missing-package.ts'
import { keepSecret } from '../../../base/core/process/secrets.ts'
import type { Workspaces } from '../contract.ts'
import { fedLine, inputEnd, inputLine } from './command.ts'
import type { ListedMachine, Machine, MachineSource, Talk, TalkCall, Vendor } from './machine.ts'
import { type VendorOptions, vendorWorkspaces } from './workspaces.ts'

/** Daytona's service, or one of your own. */
export interface DaytonaOptions extends VendorOptions {
  readonly key: string
  /** The address of the API. @default https://app.daytona.io/api */
  readonly api?: string | undefined
  /** The region. @default the organisation's */
  readonly target?: string | undefined
  /** What machines are made from. @default the image that a task names, else Daytona's own */
  readonly snapshot?: string | undefined
  readonly image?: string | undefined
}

const importSdk = () => import('@daytona/sdk')
type Sdk = Awaited<ReturnType<typeof importSdk>>

/** Seconds that a machine may take to be built, started, copied or paused. */
const startSeconds = 600

/** Workspaces in Daytona's sandboxes. */
export async function daytonaWorkspaces(options: DaytonaOptions): Promise<Workspaces> {
  keepSecret(options.key)
  const sdk = await importSdk().catch(cause => {
    throw missingPackage('the sandbox daytona', '@daytona/sdk', cause)
  })
  return await vendorWorkspaces(new DaytonaVendor(sdk, options), options)
}

class DaytonaVendor implements Vendor {
  readonly name = 'daytona'
  readonly talks = true
  readonly #sdk: Sdk
  readonly #options: DaytonaOptions
  readonly #service: Daytona

  constructor(sdk: Sdk, options: DaytonaOptions) {
    const { key: apiKey, api: apiUrl, target } = options
    this.#sdk = sdk
    this.#options = options
    this.#service = new sdk.Daytona({
      apiKey,
      ...(apiUrl !== undefined && { apiUrl }),
      ...(target !== undefined && { target }),
    })
  }

  async start({ labels, network, lease, image: named }: MachineSource): Promise<Machine> {
    const { snapshot, image = snapshot === undefined ? named : undefined } = this.#options
    const common = {
      labels: { ...labels },
      user: 'root',
      networkBlockAll: network === 'none',
      ttlMinutes: Math.ceil(lease / 60),
      autoStopInterval: 0,
    }
    const timeout = { timeout: startSeconds }
    return this.#machine(
      image === undefined
        ? await this.#service.create(
            { ...common, ...(snapshot !== undefined && { snapshot }) },
            timeout,
          )
        : await this.#service.create({ ...common, image }, timeout),
    )
  }

  #machine(sandbox: Sandbox): Machine {
    return {
      id: sandbox.id,
      async shell(line, { seconds }) {
        return (await sandbox.process.executeCommand(line, '/', undefined, seconds)).result
      },
      talk: (line, call) => talkIn(sandbox, line, call),
      upload: (path, bytes) => sandbox.fs.uploadFile(bytes, path),
      fork: async ({ labels, lease }) => {
        const copy = await sandbox.fork({}, startSeconds)
        const machine = this.#machine(copy)
        try {
          await copy.setLabels({ ...labels })
          await copy.setTtl(Math.ceil(lease / 60))
          return machine
        } catch (cause) {
          await machine.end().catch(() => undefined)
          throw cause
        }
      },
      pause: () => sandbox.pause(startSeconds),
      resume: () => sandbox.start(startSeconds),
      end: () => this.end(sandbox.id),
    }
  }

  async list(labels: Readonly<Record<string, string>>): Promise<readonly ListedMachine[]> {
    const found: ListedMachine[] = []
    for await (const sandbox of this.#service.list({ labels: { ...labels } }))
      found.push({ id: sandbox.id, labels: sandbox.labels })
    return found
  }

  async end(id: string): Promise<void> {
    try {
      await (await this.#service.get(id)).delete(startSeconds)
    } catch (cause) {
      if (!(cause instanceof this.#sdk.DaytonaNotFoundError)) throw cause
    }
  }

  /** Its client holds a connection open over which it is told of machines. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#service[Symbol.asyncDispose]()
  }

  isFull(cause: unknown): boolean {
    return cause instanceof this.#sdk.DaytonaRateLimitError
  }
}

/** A command of a session of its own, which takes lines and is followed by its log. */
async function talkIn({ process }: Sandbox, line: string, { onOutput }: TalkCall): Promise<Talk> {
  const session = `espalier-${randomUUID()}`
  await process.createSession(session)
  const asked = { command: fedLine(line), runAsync: true, suppressInputEcho: true }
  const { cmdId } = await process.executeSessionCommand(session, asked)
  const followed = process.getSessionCommandLogs(session, cmdId, onOutput, () => undefined)
  const ended = followed.then(async () => {
    const { exitCode } = await process.getSessionCommand(session, cmdId)
    await process.deleteSession(session)
    return exitCode ?? 137
  })
  const say = (text: string) => process.sendSessionCommandInput(session, cmdId, text)
  return { write: part => say(inputLine(part)), finish: () => say(inputEnd), ended }
}
