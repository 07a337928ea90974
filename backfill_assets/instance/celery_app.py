"""The Celery app of the backfill lane's workers, configured by the same settings as the runs that send to them.

`celery -A backfill_assets.instance.celery_app worker -Q backfill`
"""

from __future__ import annotations

from dagster_celery.make_app import make_app
from dagster_celery.tasks import create_execute_job_task, create_resume_job_task, create_task

from backfill_assets.instance.executor import celery_executor
from backfill_assets.settings import settings

app = make_app(celery_executor(settings()).app_args())

execute_plan = create_task(app)
execute_job = create_execute_job_task(app)
resume_job = create_resume_job_task(app)
