import {
  type DynamicModule,
  type FactoryProvider,
  Module,
  type ModuleMetadata,
  type Provider,
} from '@nestjs/common'
import { DiscoveryModule } from '@nestjs/core'
import { type OptionNames, refuseUnknown } from '../../../core/options.ts'
import { type OnlyonceModuleOptions, OPTIONS, ROUTES, Routes } from './routes.ts'

/** Options that have to be made from other providers. */
export interface OnlyonceModuleAsyncOptions
  extends Pick<ModuleMetadata, 'imports'>,
    Pick<FactoryProvider<OnlyonceModuleOptions>, 'inject' | 'useFactory'> {}

const ASYNC: OptionNames<OnlyonceModuleAsyncOptions> = { imports: true, inject: true, useFactory: true }

/**
 * What stands behind `@Idempotent()`. Import it once, in the root module: it is global.
 *
 * @example
 * OnlyonceModule.forRoot({ once, account: (request) => request.user.account })
 */
// biome-ignore lint/complexity/noStaticOnlyClass: Nest asks for a class.
export class OnlyonceModule {
  static forRoot(options: OnlyonceModuleOptions): DynamicModule {
    refuseUnknown('OnlyonceModule.forRoot()', options, { once: true, account: true })
    return moduleOf({ provide: OPTIONS, useValue: options })
  }

  /**
   * The same, with options made of other providers.
   *
   * @example
   * OnlyonceModule.forRootAsync({
   *   inject: [POOL, Accounts],
   *   useFactory: (pool, accounts) => ({
   *     once: onlyonce({ store: postgres({ pool }), secret }),
   *     account: (request) => accounts.of(request),
   *   }),
   * })
   */
  static forRootAsync(options: OnlyonceModuleAsyncOptions): DynamicModule {
    refuseUnknown('OnlyonceModule.forRootAsync()', options, ASYNC)
    const { imports, inject, useFactory } = options
    return moduleOf({ provide: OPTIONS, inject: inject ?? [], useFactory }, imports)
  }
}

Module({})(OnlyonceModule)

function moduleOf(options: Provider, imports: ModuleMetadata['imports'] = []): DynamicModule {
  return {
    module: OnlyonceModule,
    global: true,
    imports: [DiscoveryModule, ...imports],
    providers: [options, { provide: ROUTES, useClass: Routes }],
    exports: [ROUTES],
  }
}
