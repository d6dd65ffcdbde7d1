import {
  type CallHandler,
  type ExecutionContext,
  Inject,
  Injectable,
  type NestInterceptor,
} from '@nestjs/common'
import { catchError, type Observable, throwError } from 'rxjs'
import { OnlyonceError } from '../../../core/errors.ts'
import { ProtectedCall } from './call.ts'
import { prepareCall } from './marks.ts'
import { ROUTES, type Routes } from './routes.ts'

/** Prepares the call that the handler is run by, and tells it of exceptions before the filters answer them. */
export class OnlyonceInterceptor implements NestInterceptor {
  readonly #routes: Routes

  constructor(routes: Routes) {
    this.#routes = routes
  }

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const controller = context.getClass()
    const { name } = context.getHandler()
    if (context.getType() !== 'http') {
      throw new OnlyonceError('setup_invalid', {
        detail: `${controller.name}.${name}: @Idempotent() protects routes of HTTP.`,
      })
    }
    const http = context.switchToHttp()
    const call = new ProtectedCall(
      this.#routes.routeOf(controller, name),
      http.getRequest(),
      http.getResponse(),
    )
    prepareCall(http.getRequest(), call)
    return next.handle().pipe(catchError((error) => throwError(() => call.failed(error))))
  }
}

// As decorators do it: with their syntax, the file would be more than TypeScript that can be erased.
Injectable()(OnlyonceInterceptor)
Inject(ROUTES)(OnlyonceInterceptor, undefined, 0)
