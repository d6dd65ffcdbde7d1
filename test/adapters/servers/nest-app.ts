import type { AddressInfo } from 'node:net'
import { type INestApplication, Module, type ModuleMetadata, type Type } from '@nestjs/common'
import { OnlyonceModule } from '../../../src/http/adapters/nest/index.ts'
import type { Onlyonce } from '../../../src/index.ts'
import type { PostgresTx } from '../../../src/store/postgres/index.ts'
import { cleanUpLater } from '../../setup/clean-up.ts'
import { Client } from '../client.ts'
import { ACCOUNT_HEADER } from '../under-test.ts'
import { onExpress, onFastify, type Platform } from './nest.ts'

export const PLATFORMS: readonly { readonly platform: string; readonly create: Platform }[] = [
  { platform: 'Express', create: onExpress },
  { platform: 'Fastify', create: onFastify },
]

// biome-ignore lint/suspicious/noExplicitAny: each platform has a request of its own.
export const accountInHeader = (request: any): string | undefined => request.headers[ACCOUNT_HEADER]

/** An application that listens, with one controller, or with whatever else its root module is to have. */
export async function openApp(
  create: Platform,
  once: Onlyonce<PostgresTx>,
  given: Type | ModuleMetadata,
  options: { readonly rawBody?: boolean; readonly prepare?: (app: INestApplication) => void } = {},
): Promise<Client> {
  const metadata: ModuleMetadata = typeof given === 'function' ? { controllers: [given] } : given
  class AppModule {}
  const usual = [OnlyonceModule.forRoot({ once, account: accountInHeader })]
  Module({ imports: usual, ...metadata })(AppModule)
  const app: INestApplication = await create(AppModule, options.rawBody ?? true)
  cleanUpLater(() => app.close())
  options.prepare?.(app)
  await app.listen(0, '127.0.0.1')
  return new Client((app.getHttpServer().address() as AddressInfo).port)
}
